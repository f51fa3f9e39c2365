use jiff::Timestamp;
use tidal_cli::event_file::EventFile;
use tidal_db::{Action, Event, format_nanos};

/// More events than this say nothing new.
const MAX_EVENTS: usize = 10_000;

/// The event file: a reader that never panics, ends after an error, counts what it read, and reads what it read
/// again when it is written in the plainest way.
pub fn event_file(data: &[u8]) {
    for name in ["events.csv", "events.csv.gz"] {
        let Ok(mut file) = EventFile::from_reader(name, data) else { continue };
        let mut events = Vec::new();
        for event in file.by_ref().take(MAX_EVENTS) {
            match event {
                Ok(event) => events.push(event),
                Err(error) => {
                    assert!(error.to_string().contains(name), "{error} does not name the file");
                    break;
                }
            }
        }
        assert_eq!(file.rows().total(), events.len() as u64, "rows are counted wrongly");
        if events.len() < MAX_EVENTS {
            assert!(file.next().is_none(), "something follows the end");
        }
        let written = written(&events);
        let again = EventFile::from_reader("again.csv", written.as_bytes())
            .map(Iterator::collect::<Result<Vec<_>, _>>);
        match again {
            Ok(Ok(again)) => assert_eq!(again, events, "read again from\n{written}"),
            Ok(Err(error)) | Err(error) => assert!(events.is_empty(), "{error}\n{written}"),
        }
    }
}

fn written(events: &[Event]) -> String {
    let mut text = "at,action,user,item,signal,weight,community,attribute\n".to_owned();
    for Event { at_ns, action } in events {
        let at = Timestamp::from_nanosecond(i128::from(*at_ns)).map(|at| at.to_string()).unwrap_or_default();
        let row = match action {
            Action::SetAttribute { user, name, value } => {
                format!("user,{user},,,,,{}", quoted(&format!("{name}={value}")))
            }
            Action::Join { user, community } => format!("join,{user},,,,{community},"),
            Action::Quit { user, community } => format!("quit,{user},,,,{community},"),
            Action::Leave { user } => format!("leave,{user},,,,,"),
            Action::Rejoin { user } => format!("rejoin,{user},,,,,"),
            Action::Signal { user, item, signal_type, weight } => {
                let weight = format_nanos(i128::from(weight.nanos()));
                format!("signal,{user},{item},{},{weight},,", quoted(signal_type))
            }
            other => format!("{other:?}"),
        };
        text.extend([&at, ",", &row, "\n"]);
    }
    text
}

fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}
