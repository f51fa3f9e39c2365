//! What the figures were measured on, as found when they were.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Names and values for the table at the head of the report.
pub(crate) fn describe(folder: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    vec![
        ("processors", format!("{cores} x {}", field("/proc/cpuinfo", "model name").unwrap_or_else(unknown))),
        ("memory", memory()),
        ("kernel", output("uname", &["-srm"])),
        ("disk", disk(folder)),
        ("compiler", output("rustc", &["--version"])),
        ("build", "release: thin LTO, one codegen unit".to_owned()),
        ("commit", commit()),
        ("day", output("date", &["-u", "+%F"])),
        ("load before", load()),
    ]
}

/// How busy the machine was over the last minute, and the last five.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(one), Some(five)) => format!("{one} over a minute, {five} over five"),
        _ => unknown(),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The value behind a name and a colon.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory() -> String {
    let kibibytes = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()));
    kibibytes.map_or_else(unknown, |kibibytes| format!("{} GiB", kibibytes.div_ceil(1024 * 1024)))
}

/// The device and file system that hold `folder`, and whether the device turns.
fn disk(folder: &Path) -> String {
    let found = output("df", &["--output=source,fstype", &folder.to_string_lossy()]);
    let Some(line) = found.lines().nth(1) else { return unknown() };
    let mut words = line.split_whitespace();
    let (Some(device), Some(file_system)) = (words.next(), words.next()) else { return unknown() };
    let name = device.rsplit('/').next().unwrap_or(device);
    let kind = match fs::read_to_string(format!("/sys/class/block/{name}/queue/rotational")).as_deref() {
        Ok("0\n") => ", says it does not rotate",
        Ok("1\n") => ", says it rotates",
        _ => "",
    };
    format!("{device}, {file_system}{kind}")
}

fn commit() -> String {
    let commit =
        output("git", &["-C", &crate::files::root().to_string_lossy(), "rev-parse", "--short=12", "HEAD"]);
    let changes = output("git", &["-C", &crate::files::root().to_string_lossy(), "status", "--porcelain"]);
    let is_changed = changes != unknown() && !changes.is_empty();
    format!("{commit}{}", if is_changed { " and changes" } else { "" })
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    output.map_or_else(unknown, |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
