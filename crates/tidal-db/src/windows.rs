//! Counts and sums over the last hour, day and week.

use tidal_entities::{Window, WindowAggregate};

use crate::aggregates::AggregateKey;
use crate::{Error, Result, Scope, TidalDb};

impl TidalDb {
    /// What the signals of one type on `item` that took place within the last hour, day or week add up to
    /// in `scope`, as of [`score_time_ns`](Self::score_time_ns). `None` if the scope never took one; nothing
    /// but zeros if it did, but not within the window.
    ///
    /// Only for types that are declared with [`SchemaBuilder::windowed`](crate::SchemaBuilder::windowed).
    /// Time is cut into buckets, of 5 minutes for [`Window::Hour`] and of an hour for the others, and a window
    /// is the bucket of its end and whole ones before it: it begins up to one bucket later than its name says,
    /// and never earlier. See [`Window`]. Within that, counts and sums are exact.
    ///
    /// A signal counts in the bucket of its event time, however late it is delivered. Of each aggregate the
    /// last 192 buckets of an hour up to its newest signal are kept, and the last 24 of 5 minutes; a signal
    /// that is older counts in no window.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use tidal_db::{ManualClock, Schema, Scope, TidalDb, Window};
    /// const MINUTE_NS: u64 = 60_000_000_000;
    /// # let clock = Arc::new(ManualClock::new(600 * MINUTE_NS));
    /// let schema = Schema::builder().windowed("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).clock(clock.clone()).ephemeral().open()?;
    /// db.signal_at(7, 1752, "view", 1.0, 600 * MINUTE_NS)?;
    /// db.signal_at(7, 1752, "view", 0.5, 480 * MINUTE_NS)?;
    /// let count = |window| {
    ///     let found = db.aggregate_window(&Scope::Global, 1752, "view", window)?;
    ///     Ok::<_, tidal_db::Error>(found.map(|found| found.count))
    /// };
    /// assert_eq!(count(Window::Hour)?, Some(1));
    /// assert_eq!(count(Window::Day)?, Some(2));
    /// clock.advance(60 * MINUTE_NS);
    /// assert_eq!(count(Window::Hour)?, Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotWindowed`] for a type that is declared without windows; otherwise as for
    /// [`aggregate`](Self::aggregate).
    pub fn aggregate_window(
        &self,
        scope: &Scope,
        item: u64,
        signal_type: &str,
        window: Window,
    ) -> Result<Option<WindowAggregate>> {
        // A signal that comes after the time was read may be newer, so what it drove out is asked for anew.
        let mut at_ns = self.score_time_ns();
        loop {
            match self.aggregate_window_at(scope, item, signal_type, window, at_ns) {
                Err(Error::Window(_)) if at_ns < self.score_time_ns() => at_ns = self.score_time_ns(),
                answer => return answer,
            }
        }
    }

    /// The same for the window that ends at `at_ns`, ns since the Unix epoch. The whole bucket of that time
    /// counts, also what is ahead of it there; later buckets do not.
    ///
    /// # Errors
    ///
    /// As for [`aggregate_window`](Self::aggregate_window), and [`Error::Window`] if the window reaches back
    /// beyond what is kept, since the aggregate has signals that are newer by an hour ([`Window::Hour`]), a week
    /// ([`Window::Day`]) or a day ([`Window::Week`]). It says from which time on there is an answer.
    pub fn aggregate_window_at(
        &self,
        scope: &Scope,
        item: u64,
        signal_type: &str,
        window: Window,
        at_ns: u64,
    ) -> Result<Option<WindowAggregate>> {
        self.inner.log.check_open()?;
        let declared = self.resolve_signal_type(signal_type)?;
        if !declared.is_windowed {
            return Err(Error::NotWindowed { name: declared.name.clone() });
        }
        let Some(scope) = self.resolve_scope(scope)? else { return Ok(None) };
        let key = AggregateKey { item, scope, signal_type: declared.id };
        let view = self.aggregate_view()?;
        Ok(view.get(key).map(|state| state.window(window, at_ns)).transpose()?)
    }
}
