use std::str;

use unsigned_varint::decode;

use crate::CodecError;

/// Takes fields off the front of bytes; each refusal names the record that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.cut_short(N))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], CodecError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.cut_short(len))?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, CodecError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, CodecError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, CodecError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, CodecError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, CodecError> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn i128(&mut self) -> Result<i128, CodecError> {
        self.array().map(i128::from_le_bytes)
    }

    /// A number in as few bytes as it takes, seven bits each.
    pub(crate) fn varint_u64(&mut self) -> Result<u64, CodecError> {
        self.varint(decode::u64)
    }

    pub(crate) fn varint_u128(&mut self) -> Result<u128, CodecError> {
        self.varint(decode::u128)
    }

    fn varint<T>(
        &mut self,
        decode: impl FnOnce(&'a [u8]) -> Result<(T, &'a [u8]), decode::Error>,
    ) -> Result<T, CodecError> {
        let (number, rest) = decode(self.rest).map_err(|cause| match cause {
            decode::Error::Insufficient => self.cut_short(self.rest.len() + 1),
            _ => CodecError::Value {
                what: self.what,
                found: "a number in too many bytes".to_owned(),
                expected: "has each in as few as it takes, and room for it",
            },
        })?;
        self.rest = rest;
        Ok(number)
    }

    /// A text with its length in two bytes before it.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, CodecError> {
        let len = usize::from(self.u16()?);
        utf8(field, self.bytes(len)?)
    }

    /// What is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Refuses bytes after the last field.
    pub(crate) fn end(&self) -> Result<(), CodecError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(CodecError::TrailingBytes { what: self.what, extra: self.rest.len() })
        }
    }

    fn cut_short(&self, wanted: usize) -> CodecError {
        CodecError::CutShort { what: self.what, missing: wanted.saturating_sub(self.rest.len()) }
    }
}

pub(crate) fn utf8<'a>(field: &'static str, bytes: &'a [u8]) -> Result<&'a str, CodecError> {
    str::from_utf8(bytes).map_err(|source| CodecError::Utf8 { what: field, source })
}
