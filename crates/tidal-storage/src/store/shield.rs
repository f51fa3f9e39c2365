use std::{
    io,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

/// Keeps the engine's writes from a source until the source is known to be a database of ours.
///
/// To open a file the engine writes to it: a flag, a repair, the outcome of its integrity check. That must not happen
/// to a file of another program, of a later version, or that turns out to be damaged. So what it writes while opening
/// is held here, in order, and reads see it; [`admit`](Self::admit) then carries it out, and from there on everything
/// passes straight through. Without that call, nothing ever reaches the source.
#[derive(Debug)]
pub(super) struct Shield<B> {
    shared: Arc<Shared<B>>,
}

#[derive(Debug)]
struct Shared<B> {
    source: B,
    // Set with Release after the last held operation is carried out, loaded with Acquire: who sees it set sees the
    // source with all of them.
    admitted: AtomicBool,
    held: Mutex<Vec<Operation>>,
    // How long the source was when it was first read, which is after the engine has locked it: nobody else changes it
    // from there on. To ask the file before each page would be a tenth of a repair.
    source_len: OnceLock<u64>,
}

#[derive(Debug)]
enum Operation {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Sync,
}

/// The shield as the engine has it.
#[derive(Debug)]
pub(super) struct ShieldHandle<B> {
    shared: Arc<Shared<B>>,
}

impl<B: StorageBackend> Shield<B> {
    pub(super) fn over(source: B) -> Self {
        let shared = Shared {
            source,
            admitted: AtomicBool::new(false),
            held: Mutex::new(Vec::new()),
            source_len: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn handle(&self) -> ShieldHandle<B> {
        ShieldHandle { shared: Arc::clone(&self.shared) }
    }

    /// Carries out what was held, syncs included, so that a crash on the way leaves what a crash of the engine leaves.
    pub(super) fn admit(&self) -> io::Result<()> {
        let Shared { source, admitted, held, .. } = &*self.shared;
        let mut held = lock(held);
        for operation in held.drain(..) {
            match operation {
                Operation::Write { offset, bytes } => source.write(offset, &bytes)?,
                Operation::SetLen(len) => source.set_len(len)?,
                Operation::Sync => source.sync_data()?,
            }
        }
        admitted.store(true, Ordering::Release);
        Ok(())
    }
}

impl<B: StorageBackend> Shared<B> {
    /// What is held back, or nothing if everything passes through.
    fn held(&self) -> Option<MutexGuard<'_, Vec<Operation>>> {
        if self.admitted.load(Ordering::Acquire) {
            return None;
        }
        let held = lock(&self.held);
        // It may have been carried out while this waited for the lock.
        if self.admitted.load(Ordering::Acquire) { None } else { Some(held) }
    }

    /// How long the source is, which does not change while its writes are held.
    fn source_len(&self) -> io::Result<u64> {
        if let Some(len) = self.source_len.get() {
            return Ok(*len);
        }
        let len = self.source.len()?;
        Ok(*self.source_len.get_or_init(|| len))
    }
}

impl<B: StorageBackend> StorageBackend for ShieldHandle<B> {
    fn len(&self) -> io::Result<u64> {
        let Some(held) = self.shared.held() else { return self.shared.source.len() };
        let len = self.shared.source.len()?;
        if len == 0 {
            // The engine would make a new database of it.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
        }
        Ok(held.iter().rev().find_map(Operation::new_len).unwrap_or(len))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let Some(held) = self.shared.held() else { return self.shared.source.read(offset, out) };
        let mut len = self.shared.source_len()?;
        let stored = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (stored, beyond) = out.split_at_mut(stored.min(out.len()));
        // There may be nothing of it in the source yet, and to ask behind its end is an error.
        if !stored.is_empty() {
            self.shared.source.read(offset, stored)?;
        }
        beyond.fill(0);
        for operation in held.iter() {
            operation.replay(offset, out);
            len = operation.new_len().unwrap_or(len);
        }
        let wanted = u64::try_from(out.len()).map_err(io::Error::other)?;
        match offset.checked_add(wanted) {
            Some(end) if end <= len => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let Some(mut held) = self.shared.held() else { return self.shared.source.set_len(len) };
        held.push(Operation::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let Some(mut held) = self.shared.held() else { return self.shared.source.sync_data() };
        held.push(Operation::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let Some(mut held) = self.shared.held() else { return self.shared.source.write(offset, data) };
        held.push(Operation::Write { offset, bytes: data.to_vec() });
        Ok(())
    }

    // From here on everything is forwarded: only the bytes are held back, never the locks.
    fn close(&self) -> io::Result<()> {
        self.shared.source.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.shared.source.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.shared.source.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.shared.source.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.shared.source.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.shared.source.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.shared.source.query_lock_range(start, end)
    }
}

impl Operation {
    fn new_len(&self) -> Option<u64> {
        match self {
            Self::SetLen(len) => Some(*len),
            Self::Write { .. } | Self::Sync => None,
        }
    }

    /// Does to the window `out` at `window_offset` what it will do to the source.
    fn replay(&self, window_offset: u64, out: &mut [u8]) {
        match self {
            Self::Write { offset, bytes } => {
                let skipped_bytes =
                    usize::try_from(window_offset.saturating_sub(*offset)).unwrap_or(usize::MAX);
                let skipped_out = usize::try_from(offset.saturating_sub(window_offset)).unwrap_or(usize::MAX);
                let bytes = bytes.get(skipped_bytes..).unwrap_or_default();
                let out = out.get_mut(skipped_out..).unwrap_or_default();
                for (target, byte) in out.iter_mut().zip(bytes) {
                    *target = *byte;
                }
            }
            Self::SetLen(len) => {
                let kept = usize::try_from(len.saturating_sub(window_offset)).unwrap_or(usize::MAX);
                // What is cut off and grown again later reads as zero.
                out.get_mut(kept..).unwrap_or_default().fill(0);
            }
            Self::Sync => {}
        }
    }
}

// What is held is whole even if a panic struck while it was locked: each operation is pushed in one go.
fn lock(held: &Mutex<Vec<Operation>>) -> MutexGuard<'_, Vec<Operation>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{Medium, MemoryMedium, store::medium_backend::MediumBackend};

    const SOURCE_LEN: u64 = 64;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Sync,
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..100_u64, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            2 => (1..120_u64).prop_map(Step::SetLen),
            1 => Just(Step::Sync),
        ]
    }

    fn read_all(backend: &impl StorageBackend) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(backend.len().unwrap()).unwrap()];
        backend.read(0, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn held_writes_read_as_if_done_and_are_done_when_admitted(
            steps in prop::collection::vec(any_step(), 0..20),
            offset in 0..130_u64,
            len in 0..40_usize,
        ) {
            let stored: Vec<u8> = (1..=u8::try_from(SOURCE_LEN).unwrap()).collect();
            let source = Arc::new(MemoryMedium::from_bytes(stored.clone()));
            let shield = Shield::over(MediumBackend::new(source.clone()));
            let handle = shield.handle();
            let model = MemoryMedium::from_bytes(stored.clone());
            for step in steps {
                match step {
                    // The engine writes within the length only.
                    Step::Write(at, bytes) if at + u64::try_from(bytes.len()).unwrap() > model.len().unwrap() => {}
                    Step::Write(at, bytes) => {
                        handle.write(at, &bytes).unwrap();
                        model.write(at, &bytes).unwrap();
                    }
                    Step::SetLen(len) => {
                        handle.set_len(len).unwrap();
                        model.set_len(len).unwrap();
                    }
                    Step::Sync => handle.sync_data().unwrap(),
                }
            }
            prop_assert_eq!(source.snapshot(), stored);
            prop_assert_eq!(read_all(&handle), model.snapshot());
            let (mut window, mut model_window) = (vec![0; len], vec![0; len]);
            match (handle.read(offset, &mut window), model.read(offset, &mut model_window)) {
                (Ok(()), Ok(())) => prop_assert_eq!(window, model_window),
                (held, model) => prop_assert_eq!(held.map_err(|e| e.kind()), model.map_err(|e| e.kind())),
            }

            shield.admit().unwrap();
            prop_assert_eq!(source.snapshot(), model.snapshot());
            handle.write(0, b"x").unwrap();
            prop_assert!(source.snapshot().starts_with(b"x"));
        }
    }

    /// A source that notes what is done to it.
    #[derive(Debug, Default)]
    struct Noting {
        done: Mutex<Vec<&'static str>>,
    }

    impl Noting {
        fn note(&self, what: &'static str) {
            self.done.lock().unwrap().push(what);
        }
    }

    impl Medium for Noting {
        fn len(&self) -> io::Result<u64> {
            Ok(SOURCE_LEN)
        }

        fn read(&self, _offset: u64, _out: &mut [u8]) -> io::Result<()> {
            Ok(())
        }

        fn set_len(&self, _len: u64) -> io::Result<()> {
            self.note("set_len");
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            self.note("sync");
            Ok(())
        }

        fn write(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
            self.note("write");
            Ok(())
        }
    }

    /// Without its syncs a crash could leave what no crash of the engine leaves.
    #[test]
    fn held_operations_are_carried_out_in_their_order_with_their_syncs() {
        let source = Arc::new(Noting::default());
        let shield = Shield::over(MediumBackend::new(source.clone()));
        let handle = shield.handle();
        handle.write(0, b"a").unwrap();
        handle.sync_data().unwrap();
        handle.set_len(100).unwrap();
        handle.write(64, b"b").unwrap();
        handle.sync_data().unwrap();
        assert!(source.done.lock().unwrap().is_empty());
        shield.admit().unwrap();
        assert_eq!(*source.done.lock().unwrap(), ["write", "sync", "set_len", "write", "sync"]);
    }

    #[test]
    fn empty_source_is_refused() {
        let shield = Shield::over(MediumBackend::new(Arc::new(MemoryMedium::default())));
        assert_eq!(shield.handle().len().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
