//! Bytes as the document shows them: one group of hexadecimal digits a field.

use std::fmt::Write as _;

/// The most characters of a line of an example.
const LINE_LEN: usize = 100;

pub struct Example {
    pub label: String,
    /// The fields, with one space between them.
    pub text: String,
    /// Their lengths in bytes.
    pub lens: Vec<usize>,
}

impl Example {
    /// The fields must fill the bytes.
    pub fn new(label: &str, bytes: &[u8], lens: &[usize]) -> Self {
        let mut rest = bytes;
        let mut groups = Vec::new();
        for len in lens {
            let (field, after) =
                rest.split_at_checked(*len).unwrap_or_else(|| panic!("{label} is too short"));
            groups.push(hex(field));
            rest = after;
        }
        assert!(rest.is_empty(), "{label} goes on after its last field");
        Self { label: label.to_owned(), text: groups.join(" "), lens: lens.to_vec() }
    }

    /// The lines that the document should have.
    pub fn wrapped(&self) -> String {
        let indent = self.label.len() + 2;
        let (mut lines, mut line) = (Vec::new(), format!("{}  ", self.label));
        let mut is_fresh = true;
        for group in self.text.split(' ') {
            let mut group = group;
            if !is_fresh && line.len() + 1 + group.len() > LINE_LEN {
                lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                is_fresh = true;
            }
            if !is_fresh {
                line.push(' ');
            }
            while line.len() + group.len() > LINE_LEN {
                let (head, tail) = group.split_at((LINE_LEN - line.len()) / 2 * 2);
                line.push_str(head);
                // A field that goes on in the next line is marked, so that it is not read as two.
                line.push('\\');
                lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                group = tail;
            }
            line.push_str(group);
            is_fresh = false;
        }
        lines.push(line);
        lines.join("\n")
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
