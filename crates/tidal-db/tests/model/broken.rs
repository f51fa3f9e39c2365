//! Deliberate breaks of the database under test, to see that the sequences notice.

use tidal_db::Config;

#[cfg(feature = "canaries")]
thread_local! {
    /// The break in force on this thread, which runs the sequences.
    static BROKEN: std::cell::Cell<Option<tidal_db::Break>> = const { std::cell::Cell::new(None) };
}

/// Breaks what [`break_it`] said.
#[cfg(feature = "canaries")]
pub fn adapt(config: Config) -> Config {
    match BROKEN.get() {
        Some(broken) => config.broken(broken),
        None => config,
    }
}

/// Nothing is broken without the feature.
#[cfg(not(feature = "canaries"))]
pub fn adapt(config: Config) -> Config {
    config
}

/// Breaks every database that this thread opens from now on.
#[cfg(feature = "canaries")]
pub fn break_it(broken: tidal_db::Break) {
    BROKEN.set(Some(broken));
}
