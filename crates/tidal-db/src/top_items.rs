//! The best items of a scope.

use tidal_entities::ScoreMoment;

use crate::{Result, Scope, SignalType, TidalDb};

impl TidalDb {
    /// The `k` items of `scope` with the highest scores by signals of one type, best first, each with its
    /// score as of [`score_time_ns`](Self::score_time_ns). Items with equal scores are in order of their ids.
    /// A scope that took no such signal has none.
    ///
    /// The cost depends on `k` alone and not on how many items the scope has: every signal, late or of
    /// negative weight, moves its item in an index as it comes. The best of a scope that is asked again are kept in a
    /// list, and only what changed among them is looked up. Scores are those of
    /// [`aggregate`](Self::aggregate), to the last bit.
    ///
    /// Where scores can no longer be told apart, since an `f64` holds nothing nearer to zero than 5e-324
    /// and nothing beyond [`f64::MAX`], the order is still that of the true scores: long after the
    /// last signal, when every score is 0.0, the items come as they came before.
    ///
    /// While signals are recorded, all items are shown as they were at one moment of the call.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidal_db::{Schema, Scope, TidalDb};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).ephemeral().open()?;
    /// db.join_community(7, 4)?;
    /// for (item, weight) in [(1752, 1.0), (1753, 2.0), (1754, -3.0), (1752, 0.5)] {
    ///     db.signal(7, item, "view", weight)?;
    /// }
    /// let best: Vec<u64> = db.top_items(&Scope::Community(4), "view", 2)?.into_iter().map(|(item, _)| item).collect();
    /// assert_eq!(best, [1753, 1752]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`aggregate`](Self::aggregate).
    pub fn top_items(&self, scope: &Scope, signal_type: &str, k: usize) -> Result<Vec<(u64, f64)>> {
        self.top_items_at(scope, signal_type, k, self.score_time_ns())
    }

    /// The same with scores as of `at_ns`, ns since the Unix epoch. The items and their order are the
    /// same at every time.
    ///
    /// # Errors
    ///
    /// As for [`aggregate`](Self::aggregate).
    pub fn top_items_at(
        &self,
        scope: &Scope,
        signal_type: &str,
        k: usize,
        at_ns: u64,
    ) -> Result<Vec<(u64, f64)>> {
        self.inner.log.check_open()?;
        let SignalType { id: signal_type, half_life, .. } = *self.resolve_signal_type(signal_type)?;
        let Some(scope) = self.resolve_scope(scope)? else { return Ok(Vec::new()) };
        let items = self.aggregate_view()?.top(scope, signal_type, k);
        let moment = ScoreMoment::new(at_ns, half_life);
        Ok(items.into_iter().map(|(item, rank)| (item, moment.value_of(rank))).collect())
    }
}
