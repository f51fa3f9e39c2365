//! Starts children, kills them, and compares what is left with what they acknowledged.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use tidal_db::{Durability, TidalDb};

use crate::child::{BATCHED, Dice, ORDER, config};
use crate::ledger::{Figures, Ledger};

/// A database lives through so many kills, and then another is made, so that making one is killed too.
const KILLS_PER_DATABASE: u64 = 20;
/// The most that a child says before it is killed: long enough for checkpoints and merges.
const MAX_LINES: u64 = 600;
/// The longest that it lives on after that.
const MAX_LATER_US: u64 = 8_000;
/// Serials of one child; they are weights, so they stay far below the largest.
const SERIALS_PER_CHILD: u64 = 1_000_000;

/// This test program again, as the child that obeys `order`.
fn start(order: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args(["--exact", "a_child_obeys_its_parent", "--nocapture", "--test-threads", "1"])
        .env(ORDER, order)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// When a child is killed: so many lines after it began to open the database, and a little later. Lines and not
/// time, so that a slow machine sees the same.
struct Moment {
    lines: usize,
    later: Duration,
}

impl Moment {
    /// Anywhere: before the open, in it, and among the operations.
    fn anywhere(dice: &mut Dice) -> Self {
        let lines = if dice.below(4) == 0 { dice.below(2) } else { 2 + dice.below(MAX_LINES) };
        Self {
            lines: usize::try_from(lines).unwrap(),
            later: Duration::from_micros(dice.below(MAX_LATER_US)),
        }
    }

    /// While the database is opened.
    fn in_open(dice: &mut Dice) -> Self {
        Self { lines: 1, later: Duration::from_micros(dice.below(MAX_LATER_US)) }
    }
}

/// Kills the child at its moment; returns the whole lines it said from the open on, and whether it had ended by
/// itself.
fn kill_at(mut child: Child, moment: &Moment) -> (Vec<String>, bool) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (say, said) = mpsc::channel();
    // The pipe is emptied all the time, so that the child never waits for it.
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while out.read_line(&mut line).unwrap() > 0 {
            if line.ends_with('\n') {
                say.send(line.trim_end().to_owned()).unwrap();
            }
            line.clear();
        }
    });
    // The runner of the tests says something first, and the line that it began is the first of the child.
    let mut said = said.into_iter().skip_while(|line| !line.ends_with("opening"));
    let mut lines: Vec<String> = said.by_ref().take(moment.lines).collect();
    std::thread::sleep(moment.later);
    let ended = child.try_wait().unwrap();
    // On Unix this is SIGKILL: the process gets no chance to tidy up.
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    lines.extend(said);
    if let Some(status) = ended {
        assert!(status.success(), "a child failed by itself, after {:?}", lines.last());
    }
    (lines, ended.is_some())
}

/// Kills `kills` children of databases in `folder`.
pub fn kill(kills: u64, durability: Durability, folder: &Path) -> Figures {
    let mut dice = Dice(u64::from(SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos()) + 1);
    let seed = dice.0;
    println!("seed {seed}");
    let named = if durability == BATCHED { "batched" } else { "immediate" };
    let mut figures = Figures::default();
    let mut database = 0;
    while figures.kills < kills {
        let path = folder.join(format!("{named}-{database}.tidal"));
        database += 1;
        let mut ledger = Ledger::new(durability == Durability::Immediate);
        let mut serial = 0;
        for _ in 0..KILLS_PER_DATABASE.min(kills - figures.kills) {
            let first_serial = serial;
            serial += SERIALS_PER_CHILD;
            let order =
                |work: &str, seed: u64| format!("{named} {seed} {first_serial} {work} {}", path.display());
            let child = start(&order("act", dice.below(1 << 30)));
            let (lines, has_ended) = kill_at(child, &Moment::anywhere(&mut dice));
            figures.kills += u64::from(!has_ended);
            let said = |what: &str| lines.iter().any(|line| line.ends_with(what));
            figures.kills_in_open += u64::from(said("opening") && !said("opened"));
            for line in &lines {
                ledger.hear(line, &mut figures);
            }
            if path.exists() && dice.below(3) == 0 {
                let child = start(&order("open", 0));
                let (lines, has_ended) = kill_at(child, &Moment::in_open(&mut dice));
                let began = lines.iter().any(|line| line.ends_with("opening"));
                figures.kills += u64::from(!has_ended);
                figures.kills_in_recovery += u64::from(!has_ended && began);
            }
            if !path.exists() {
                assert!(!ledger.has_acknowledged, "the database is gone; seed {seed}");
                continue;
            }
            let db: TidalDb = config(&path, durability).open().unwrap();
            assert!(db.open_report().is_clean(), "{:?}", db.open_report());
            ledger.compare(&db, &mut figures);
            db.close().unwrap();
        }
        if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
    }
    figures
}
