use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The sole right to keep a storage's contents consistent, given back when dropped.
///
/// Made by [`Storage::claim`](crate::Storage::claim). It does not keep other handles from writing; it keeps a second
/// layer, which would mirror the contents in memory as the first does, from being built over the same storage.
#[must_use = "a claim ends when it is dropped"]
pub struct Claim {
    // Swapped with Acquire and cleared with Release, so that the next holder sees all that the last one did.
    is_claimed: Arc<AtomicBool>,
}

impl Claim {
    /// Takes the claim, or nothing if somebody has it.
    pub(crate) fn take(is_claimed: &Arc<AtomicBool>) -> Option<Self> {
        let was_claimed = is_claimed.swap(true, Ordering::Acquire);
        (!was_claimed).then(|| Self { is_claimed: Arc::clone(is_claimed) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.is_claimed.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Claim").finish_non_exhaustive()
    }
}
