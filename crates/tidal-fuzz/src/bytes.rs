//! Numbers out of any bytes; where they end, zeros follow.

/// What is left of the input.
#[derive(Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// So many bytes as the next one says, or what is left.
    pub(crate) fn slice(&mut self) -> &'a [u8] {
        let len = usize::from(self.u8()).min(self.0.len());
        let (slice, rest) = self.0.split_at(len);
        self.0 = rest;
        slice
    }

    /// One of a few.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T], otherwise: T) -> T {
        let nth = usize::from(self.u8());
        from.get(nth % from.len().max(1)).copied().unwrap_or(otherwise)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let len = N.min(self.0.len());
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        let mut array = [0; N];
        array.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        array
    }
}
