//! What this process takes.

/// How many bytes of this process are in memory.
///
/// # Panics
///
/// Where the system does not say so as Linux does.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says what a process takes");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has a size");
    let kibibytes: u64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    kibibytes * 1024
}
