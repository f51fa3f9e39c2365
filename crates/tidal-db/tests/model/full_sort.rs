//! What `top_items` promises, done the long way: all aggregates of the scope, sorted.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tidal_db::{Result, Scope, TidalDb};

/// All items of every scope by score, best first, equal ones by id.
pub struct FullSort {
    at_ns: u64,
    by_score: BTreeMap<(Scope, String), Vec<(u64, f64)>>,
}

impl FullSort {
    /// Sorts what `db` holds by the scores as of `at_ns`. Scores that are equal there for want of smaller or larger
    /// floats differ at another moment: `moments_ns` are the times of all signals.
    pub fn new(db: &TidalDb, at_ns: u64, moments_ns: &[u64]) -> Result<Self> {
        let mut moments_ns = moments_ns.to_vec();
        moments_ns.sort_unstable();
        let mut scores: BTreeMap<(Scope, String), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for moment_ns in std::iter::once(at_ns).chain(moments_ns.into_iter().rev()) {
            for row in db.aggregates_at(None, moment_ns)? {
                let row = row?;
                let items = scores.entry((row.scope, row.signal_type)).or_default();
                items.entry(row.item).or_default().push(row.aggregate.score);
            }
            if scores.values().all(all_differ) {
                break;
            }
        }
        let sorted = scores.into_iter().map(|(of, items)| {
            let mut items: Vec<_> = items.into_iter().collect();
            items.sort_by(|a, b| best_first(&a.1, &b.1).then(a.0.cmp(&b.0)));
            (of, items.into_iter().map(|(item, scores)| (item, scores[0])).collect())
        });
        Ok(Self { at_ns, by_score: sorted.collect() })
    }

    /// The best `k`.
    pub fn best(&self, scope: &Scope, signal_type: &str, k: usize) -> &[(u64, f64)] {
        let all = self.by_score.get(&(scope.clone(), signal_type.to_owned()));
        all.map_or(&[], |all| &all[..k.min(all.len())])
    }

    /// Compares the database with this; says what differs.
    pub fn same(&self, db: &TidalDb, scope: &Scope, signal_type: &str, k: usize) -> Result<(), String> {
        let top = db.top_items_at(scope, signal_type, k, self.at_ns);
        let top = top.map_err(|error| format!("top_items of {scope} failed: {error:?}"))?;
        let should_be = self.best(scope, signal_type, k);
        let bits = |items: &[(u64, f64)]| -> Vec<_> {
            items.iter().map(|(item, score)| (*item, score.to_bits())).collect()
        };
        if bits(&top) != bits(should_be) {
            return Err(format!(
                "the best {k} {signal_type} of {scope} at {} are\n    {top:?}\nand should be\n    {should_be:?}",
                self.at_ns
            ));
        }
        // Scores that an f64 holds in full are compared as they are, and then by id: nothing else tells them apart.
        for pair in top.windows(2) {
            let [(item, value), (below, value_below)] = [pair[0], pair[1]];
            let is_exact = value.is_normal() && value.abs() < f64::MAX;
            let in_order =
                value_below.total_cmp(&value).then(if is_exact { item.cmp(&below) } else { Ordering::Less });
            if in_order.is_ge() {
                return Err(format!("{item} with {value:e} stands before {below} with {value_below:e}"));
            }
        }
        Ok(())
    }
}

fn best_first(a: &[f64], b: &[f64]) -> Ordering {
    let differ = a.iter().zip(b).map(|(a, b)| b.total_cmp(a));
    differ.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Whether no two items have had the same scores so far.
fn all_differ(items: &BTreeMap<u64, Vec<f64>>) -> bool {
    let mut scores: Vec<_> = items.values().collect();
    scores.sort_by(|a, b| best_first(a, b));
    scores.windows(2).all(|pair| best_first(pair[0], pair[1]).is_ne())
}
