//! What `docs/format.md` says, taken apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");

/// A line of a table of fields.
#[derive(Clone)]
pub struct Field {
    pub offset: String,
    pub size: String,
    pub name: String,
}

#[derive(Default)]
pub struct Document {
    pub text: String,
    /// The content of the one block of JSON.
    pub json: String,
    /// The content of the one block of TOML.
    pub toml: String,
    /// Fields by label, as in [`super::example::Example::text`].
    pub examples: BTreeMap<String, String>,
    /// The table of fields that stands last before an example.
    fields: BTreeMap<String, Vec<Field>>,
}

impl Document {
    pub fn read() -> Self {
        let text = fs::read_to_string(PATH).unwrap_or_else(|error| panic!("{PATH}: {error}"));
        let mut document = Self::default();
        let mut table = Vec::new();
        let mut fence = None;
        let mut label = String::new();
        for line in text.lines() {
            match (fence, line.strip_prefix("```")) {
                (None, Some(info)) => fence = Some(info),
                (Some(_), Some(_)) => fence = None,
                (Some("hex"), None) => document.take_example(line, &mut label, &table),
                (Some("json"), None) => document.json.push_str(line),
                (Some("toml"), None) => document.toml.push_str(line),
                (Some(_), None) => {}
                // A table of other things, or a headline, ends what a table of fields is good for.
                (None, None) if line.starts_with("| offset |") || line.starts_with('#') => table.clear(),
                (None, None) => table.extend(field(line)),
            }
        }
        assert!(fence.is_none(), "a block is not closed");
        document.text = text;
        document
    }

    fn take_example(&mut self, line: &str, label: &mut String, table: &[Field]) {
        let joins;
        let digits = if line.starts_with(' ') {
            let before = self.examples.get_mut(label).expect("the first line has a label");
            joins = before.ends_with('\\');
            if joins {
                before.pop();
            } else {
                before.push(' ');
            }
            line.trim()
        } else {
            let (name, digits) = line.split_once("  ").expect("a label, two spaces, digits");
            name.clone_into(label);
            assert!(self.examples.insert(label.clone(), String::new()).is_none(), "{label} twice");
            if !label.ends_with(" key") && !table.is_empty() {
                self.fields.insert(label.clone(), table.to_vec());
            }
            digits.trim()
        };
        self.examples.get_mut(label).expect("just inserted").push_str(digits);
    }

    /// The bytes of an example.
    pub fn bytes(&self, label: &str) -> Vec<u8> {
        let text = self.examples.get(label).unwrap_or_else(|| panic!("no example {label}"));
        let digits: Vec<_> = text.bytes().filter(|byte| *byte != b' ').collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// The fields that the document says an example has, if it says any.
    pub fn fields_of(&self, label: &str) -> Option<&[Field]> {
        self.fields.get(label).map(Vec::as_slice)
    }

    /// The cells of the one row of a table that begins with `first`.
    pub fn row(&self, first: &str) -> Vec<&str> {
        let rows: Vec<_> =
            self.text.lines().map(cells).filter(|cells| cells.first() == Some(&first)).collect();
        let [row] = &rows[..] else { panic!("{} rows begin with {first}", rows.len()) };
        row.clone()
    }

    /// The tables that are said to hold records.
    pub fn tables_in_use(&self) -> BTreeSet<String> {
        let name = |cell: &str| {
            let name = cell.strip_prefix('`')?.strip_suffix('`')?;
            name.contains('/').then(|| name.to_owned())
        };
        let rows = self.text.lines().map(cells).filter(|cells| cells.len() == 4 && cells[1] == "in use");
        rows.filter_map(|cells| name(cells[0])).collect()
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.strip_prefix('|')
        .and_then(|line| line.strip_suffix('|'))
        .map_or(Vec::new(), |line| line.split('|').map(str::trim).collect())
}

/// A line of a table of fields has five cells.
fn field(line: &str) -> Option<Field> {
    let [offset, size, name, _, _] = cells(line)[..] else { return None };
    let is_rule = offset.starts_with("---");
    (!is_rule).then(|| Field { offset: offset.to_owned(), size: size.to_owned(), name: name.to_owned() })
}
