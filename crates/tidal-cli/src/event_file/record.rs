//! CSV records with the lines on which they begin.
//!
//! The csv crate splits records into fields. It is handed one record at a time, so that a quote that is never closed
//! is an error where it was opened, instead of a field that swallows the rest of the file.

use std::io::{self, BufRead, Read};

use csv::StringRecord;

use super::error::EventFileErrorKind;
use super::quoting::Quoting;

/// The longest record in bytes: an event with every text at its limit is far shorter.
pub(super) const MAX_RECORD_BYTES: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What is wrong, and on which line.
pub(super) struct Fault {
    pub(super) line: u64,
    pub(super) kind: EventFileErrorKind,
}

/// Reads records one by one.
pub(super) struct RecordReader<R: BufRead> {
    records: csv::Reader<RecordFeed<R>>,
    fields: StringRecord,
}

impl<R: BufRead> RecordReader<R> {
    pub(super) fn new(source: R) -> Self {
        let records = csv::ReaderBuilder::new()
            .has_headers(false)
            // The number of fields is checked against the header, in words of our own.
            .flexible(true)
            // Room for the longest record: a read hands over one whole record, never a part of the next.
            .buffer_capacity(MAX_RECORD_BYTES)
            .from_reader(RecordFeed::new(source));
        Self { records, fields: StringRecord::new() }
    }

    /// The fields of the record that was read last.
    pub(super) fn fields(&self) -> &StringRecord {
        &self.fields
    }

    /// Reads the next record and returns the line on which it begins, or `None` at the end.
    pub(super) fn read(&mut self) -> Result<Option<u64>, Fault> {
        let read = self.records.read_record(&mut self.fields);
        let feed = self.records.get_mut();
        match read {
            Ok(true) => Ok(Some(feed.first_line)),
            Ok(false) => Ok(None),
            Err(error) => Err(feed.fault.take().unwrap_or_else(|| Fault {
                line: feed.first_line,
                kind: EventFileErrorKind::Read { cause: error.into() },
            })),
        }
    }
}

/// Hands out one record a read: a line, or as many as a quoted field reaches over.
struct RecordFeed<R> {
    source: R,
    /// Lines read so far.
    line_count: u64,
    /// The line on which the current record begins.
    first_line: u64,
    record: Vec<u8>,
    handed_out: usize,
    /// Why the last read failed.
    fault: Option<Fault>,
}

impl<R: BufRead> RecordFeed<R> {
    fn new(source: R) -> Self {
        Self { source, line_count: 0, first_line: 0, record: Vec::new(), handed_out: 0, fault: None }
    }

    /// Gathers the lines of the next record; none at the end of the file.
    fn gather(&mut self) -> Result<(), Fault> {
        self.record.clear();
        self.handed_out = 0;
        while is_blank(&self.record) {
            self.record.clear();
            if !self.read_line()? {
                return Ok(());
            }
        }
        self.first_line = self.line_count;
        let line = self.first_line;
        let mut quoting = Quoting::default();
        let mut scanned = 0;
        loop {
            for byte in self.record.get(scanned..).unwrap_or_default() {
                quoting =
                    quoting.after(*byte).ok_or(Fault { line, kind: EventFileErrorKind::TextAfterQuote })?;
            }
            scanned = self.record.len();
            if quoting != Quoting::Quoted {
                return Ok(());
            }
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return Err(Fault { line, kind: EventFileErrorKind::UnclosedQuote }),
                Err(Fault { kind: kind @ EventFileErrorKind::TooLong, .. }) => {
                    return Err(Fault { line, kind });
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Appends the next line with its end to the record; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, Fault> {
        let line = self.line_count + 1;
        let failed = |kind| Fault { line, kind };
        let start = self.record.len();
        let allowed = (MAX_RECORD_BYTES + 1).saturating_sub(start);
        let read = (&mut self.source)
            .take(allowed as u64)
            .read_until(b'\n', &mut self.record)
            .map_err(|cause| failed(EventFileErrorKind::Read { cause }))?;
        if read == 0 {
            return Ok(false);
        }
        if read == allowed {
            return Err(failed(EventFileErrorKind::TooLong));
        }
        if self.line_count == 0 && self.record.starts_with(BYTE_ORDER_MARK) {
            self.record.drain(..BYTE_ORDER_MARK.len());
        }
        let added = self.record.get(start..).unwrap_or_default();
        if str::from_utf8(added).is_err() {
            return Err(failed(EventFileErrorKind::NotUtf8));
        }
        self.line_count = line;
        Ok(true)
    }
}

impl<R: BufRead> Read for RecordFeed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.handed_out == self.record.len()
            && let Err(fault) = self.gather()
        {
            self.fault = Some(fault);
            return Err(io::Error::other("the record cannot be read"));
        }
        let mut rest = self.record.get(self.handed_out..).unwrap_or_default();
        let handed_out = rest.read(out)?;
        self.handed_out += handed_out;
        Ok(handed_out)
    }
}

fn is_blank(line: &[u8]) -> bool {
    matches!(line, [] | [b'\n' | b'\r'] | [b'\r', b'\n'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EventFileErrorKind, MAX_RECORD_BYTES, RecordReader};

    /// The line on which a record begins, and its fields.
    type Record = (u64, Vec<String>);

    /// The records, and the error that ended them with its line.
    fn read_all(text: &[u8]) -> (Vec<Record>, Option<(u64, EventFileErrorKind)>) {
        let mut reader = RecordReader::new(text);
        let mut records = Vec::new();
        loop {
            match reader.read() {
                Ok(Some(line)) => records.push((line, reader.fields().iter().map(str::to_owned).collect())),
                Ok(None) => return (records, None),
                Err(fault) => return (records, Some((fault.line, fault.kind))),
            }
        }
    }

    fn fields(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn line_ends_marks_and_empty_lines_are_skipped() {
        let expected = vec![(1, fields(&["a", "b"])), (2, fields(&["c", ""])), (5, fields(&["", "d"]))];
        for text in ["a,b\nc,\n\n\n,d\n", "a,b\r\nc,\r\n\r\n\r\n,d\r\n", "\u{feff}a,b\nc,\n\n\n,d"] {
            let (records, error) = read_all(text.as_bytes());
            assert_eq!(records, expected, "{text:?}");
            assert!(error.is_none());
        }
    }

    #[test]
    fn quoted_fields_hold_commas_quotes_and_line_ends() {
        let (records, error) = read_all(b"\"a,\"\"b\"\"\",\"\"\n\"c\r\nd\",e\nf,g \"h\"\n");
        let expected = vec![
            (1, fields(&["a,\"b\"", ""])),
            (2, fields(&["c\r\nd", "e"])),
            (4, fields(&["f", "g \"h\""])),
        ];
        assert_eq!(records, expected);
        assert!(error.is_none());
    }

    #[test]
    fn an_unclosed_quote_is_an_error_at_its_record() {
        let (records, error) = read_all(b"a\nb,\"c\nd\ne\n");
        assert_eq!(records.len(), 1);
        assert!(matches!(error, Some((2, EventFileErrorKind::UnclosedQuote))));
    }

    #[test]
    fn text_behind_a_closing_quote_is_an_error() {
        let (_, error) = read_all(b"a\n\"b\"c,d\n");
        assert!(matches!(error, Some((2, EventFileErrorKind::TextAfterQuote))));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error_at_their_own_line() {
        let (_, error) = read_all(b"a\n\"b\n\xff\"\n");
        assert!(matches!(error, Some((3, EventFileErrorKind::NotUtf8))));
    }

    #[test]
    fn a_record_has_a_longest_length() {
        let fits = "x".repeat(MAX_RECORD_BYTES - 1) + "\n";
        assert!(read_all(fits.as_bytes()).1.is_none());
        let too_long = "x".repeat(MAX_RECORD_BYTES + 1);
        assert!(matches!(read_all(too_long.as_bytes()).1, Some((1, EventFileErrorKind::TooLong))));
        let too_long_within_quotes = format!("\"{}", "x\n".repeat(MAX_RECORD_BYTES));
        assert!(matches!(
            read_all(too_long_within_quotes.as_bytes()).1,
            Some((1, EventFileErrorKind::TooLong))
        ));
    }

    proptest! {
        /// What the usual writer writes is read as it was meant, and on the line where it stands.
        #[test]
        fn written_records_come_back(
            records in prop::collection::vec(prop::collection::vec("[a,\"\r\n é=]{0,6}", 2..5), 0..8),
            is_crlf in any::<bool>(),
        ) {
            let terminator = if is_crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new().flexible(true).terminator(terminator).from_writer(Vec::new());
            let mut line = 1;
            let mut expected = Vec::new();
            for record in &records {
                writer.write_record(record).unwrap();
                expected.push((line, record.clone()));
                line += 1 + record.iter().map(|field| field.matches('\n').count() as u64).sum::<u64>();
            }
            let (found, error) = read_all(&writer.into_inner().unwrap());
            prop_assert!(error.is_none());
            prop_assert_eq!(found, expected);
        }
    }
}
