use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::Fault;
use crate::{Place, StorageError};

/// What the engine was asked for, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Open,
    Read,
    Write,
    Close,
    Release,
}

impl Action {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Create => "creating",
            Self::Open => "opening",
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Close => "closing",
            Self::Release => "ending a read of",
        }
    }
}

/// Where a database lives and what has gone wrong with it: shared by the store and by every scan over it.
pub(super) struct Health {
    place: Place,
    // Set once and for all by the first failure after which writing is refused.
    write_latch: OnceLock<String>,
    // Set by the first panic, after which reading is refused too: what the engine answers then is not known to be
    // true.
    panic_latch: OnceLock<String>,
    // Stored with Release before the database is taken away, loaded with Acquire: who sees the database gone sees
    // this set.
    closed: AtomicBool,
}

impl Health {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            write_latch: OnceLock::new(),
            panic_latch: OnceLock::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Runs what calls the engine. This is the one place where its panics become errors.
    ///
    /// What `calls` returns must hold nothing of the engine whose drop can panic, unless it is [`Contained`].
    pub(super) fn contain<T>(
        &self,
        action: Action,
        calls: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, StorageError> {
        // Unwind safety is asserted on these grounds: after a panic the latch keeps every later call away from the
        // engine, except the one that closes it.
        match catch_unwind(AssertUnwindSafe(calls)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) => Err(fault.into_error(self, action)),
            Err(payload) => {
                let message = panic_message(payload.as_ref());
                self.panic_latch
                    .get_or_init(|| format!("the engine panicked while {} it: {message}", action.name()));
                Err(StorageError::EnginePanicked {
                    place: self.place.clone(),
                    action: action.name(),
                    message,
                })
            }
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Refuses all later writes. The first cause stays.
    pub(super) fn latch_writes(&self, cause: String) {
        self.write_latch.get_or_init(|| cause);
    }

    pub(super) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn check_readable(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(self.closed_error());
        }
        self.panic_latch.get().map_or(Ok(()), |cause| Err(self.latched_by(cause)))
    }

    pub(super) fn check_writable(&self) -> Result<(), StorageError> {
        self.check_readable()?;
        self.write_latch.get().map_or(Ok(()), |cause| Err(self.latched_by(cause)))
    }

    pub(super) fn closed_error(&self) -> StorageError {
        StorageError::Closed { place: self.place.clone() }
    }

    /// The error for a refusal that the engine itself gives after an earlier failure.
    pub(super) fn latched_error(&self) -> StorageError {
        let cause = self.panic_latch.get().or(self.write_latch.get());
        self.latched_by(cause.map_or("an i/o error", String::as_str))
    }

    fn latched_by(&self, cause: &str) -> StorageError {
        StorageError::Latched { place: self.place.clone(), cause: cause.to_owned() }
    }
}

/// Something of the engine's that is also released through [`Health::contain`].
pub(super) struct Contained<T> {
    // Always there until it is dropped.
    value: Option<T>,
    health: std::sync::Arc<Health>,
}

impl<T> Contained<T> {
    pub(super) fn new(value: T, health: std::sync::Arc<Health>) -> Self {
        Self { value: Some(value), health }
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// Runs what calls the engine on the value.
    pub(super) fn contain<R>(
        &mut self,
        action: Action,
        calls: impl FnOnce(&mut T) -> Result<R, Fault>,
    ) -> Result<R, StorageError> {
        let value = self.value.as_mut().ok_or_else(|| self.health.closed_error())?;
        self.health.contain(action, || calls(value))
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        // A panic is remembered by the latch; a release has nothing else to report.
        let _ = self.health.contain(Action::Release, || {
            drop(value);
            Ok(())
        });
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
