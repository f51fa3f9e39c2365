//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

pub mod double_double;

use std::fmt::Write;

/// The bytes of a record, one field a line: offset, length, hexadecimal, name. The fields must fill the bytes.
pub fn labelled(fields: &[(&str, usize)], bytes: &[u8]) -> String {
    let mut text = String::from("offset  len  bytes  field\n");
    let mut offset = 0;
    for (name, len) in fields {
        let field = bytes.get(offset..offset + len).unwrap_or_else(|| panic!("bytes end before {name}"));
        writeln!(text, "{offset:>6}  {len:>3}  {}  {name}", hex(field)).unwrap();
        offset += len;
    }
    assert_eq!(offset, bytes.len(), "bytes go on after the last field");
    text
}

/// Key and sealed value of a row. The fields are those of the value before its seal.
pub fn labelled_row(suffix: &[(&str, usize)], fields: &[(&str, usize)], key: &[u8], value: &[u8]) -> String {
    let key_fields = [&[("entity id", 8), ("separator", 1), ("tag", 1)], suffix].concat();
    let value_fields = [fields, &[("checksum", 4)]].concat();
    format!("key\n{}\nvalue\n{}", labelled(&key_fields, key), labelled(&value_fields, value))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// An error and what caused it, one a line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, "\n  caused by: {error}").unwrap();
        source = error.source();
    }
    text
}

/// Every value that differs from these bytes in one bit.
pub fn single_bit_flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}
