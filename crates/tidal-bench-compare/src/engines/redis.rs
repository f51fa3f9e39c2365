use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidal_bench::{Crowd, SignalOf, UpdateKey};

use super::{Engine, SIGNALS_PER_COMMIT, Total};

/// Ends the server when this process ends, however it does: its input is then closed.
const LEASH: &str = "command -v redis-server > /dev/null || exit 1
\"$@\" & server=$!
cat > /dev/null
kill $server
wait $server";

/// What follows an item in the name of the field that has the sum of its weights, in units of 1e-9.
const WEIGHT: &str = "w";
const ONE_NANOS: &str = "1000000000";

/// A server of its own on a socket, which keeps nothing on disk: one hash a scope, commands in long pipelines.
pub(crate) struct Redis {
    server: Child,
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Redis {
    pub(crate) fn start(folder: &Path) -> Result<Self, String> {
        let socket = folder.join("redis.socket");
        let mut server = Command::new("sh")
            .args([
                "-c",
                LEASH,
                "sh",
                "redis-server",
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
            ])
            .arg(folder)
            .arg("--unixsocket")
            .arg(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("no server: sh does not start: {error}"))?;
        for _ in 0..100 {
            if let Ok(stream) = UnixStream::connect(&socket) {
                let answers = BufReader::with_capacity(1 << 20, stream.try_clone().unwrap());
                return Ok(Self { server, stream, answers });
            }
            if server.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err("no server: redis-server is not installed".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        release(&mut server);
        Err("no server: redis-server does not answer".to_owned())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty() && !line.starts_with('-'), "the server answered {line:?}");
        line.trim_end().to_owned()
    }

    /// A number behind a sign, as lengths and integers are sent.
    fn number(&mut self) -> u64 {
        self.line()[1..].parse().unwrap()
    }

    fn read_numbers(&mut self, len: usize) {
        for _ in 0..len {
            self.number();
        }
    }

    fn text(&mut self) -> String {
        let _len = self.number();
        self.line()
    }

    fn texts(&mut self) -> Vec<String> {
        (0..self.number()).map(|_| self.text()).collect()
    }
}

fn push_command(commands: &mut String, words: &[&str]) {
    let _infallible = write!(commands, "*{}\r\n", words.len());
    for word in words {
        let _infallible = write!(commands, "${}\r\n{word}\r\n", word.len());
    }
}

impl Engine for Redis {
    fn name(&self) -> &'static str {
        "Redis, two HINCRBY an aggregate, pipelines of 1,000 signals, in memory"
    }

    fn take(&mut self, signals: &[SignalOf]) {
        // The server has the next pipeline before the answers to the last are read, so that it is never idle while
        // commands are made.
        let mut unanswered = 0;
        for chunk in signals.chunks(SIGNALS_PER_COMMIT) {
            let mut commands = String::new();
            let mut sent = 0;
            for (scope, item) in chunk.iter().flat_map(|signal| Crowd::gated_updates(*signal)) {
                let scope = scope.to_string();
                push_command(&mut commands, &["HINCRBY", &scope, &item.to_string(), "1"]);
                push_command(&mut commands, &["HINCRBY", &scope, &format!("{item}{WEIGHT}"), ONE_NANOS]);
                sent += 2;
            }
            self.stream.write_all(commands.as_bytes()).unwrap();
            self.read_numbers(unanswered);
            unanswered = sent;
        }
        self.read_numbers(unanswered);
    }

    fn totals(&mut self) -> Vec<(UpdateKey, Total)> {
        self.stream.write_all(b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n").unwrap();
        let mut totals = BTreeMap::<UpdateKey, Total>::new();
        for scope in self.texts() {
            let mut command = String::new();
            push_command(&mut command, &["HGETALL", &scope]);
            self.stream.write_all(command.as_bytes()).unwrap();
            let scope = scope.parse().unwrap();
            for pair in self.texts().chunks(2) {
                match pair[0].strip_suffix(WEIGHT) {
                    Some(item) => {
                        let nanos: f64 = pair[1].parse().unwrap();
                        totals.entry((scope, item.parse().unwrap())).or_default().1 = nanos / 1e9;
                    }
                    None => {
                        totals.entry((scope, pair[0].parse().unwrap())).or_default().0 =
                            pair[1].parse().unwrap();
                    }
                }
            }
        }
        totals.into_iter().collect()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        release(&mut self.server);
    }
}

fn release(server: &mut Child) {
    drop(server.stdin.take());
    let _ended = server.wait();
}
