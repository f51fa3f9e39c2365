//! Which rows there are, and how each is measured.

/// A chart of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartOf {
    /// The name under which the row hands on its points.
    pub(crate) name: &'static str,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
}

/// A row of figures: what one process measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) method: &'static str,
    pub(crate) chart: Option<ChartOf>,
}

/// In the order in which they run.
pub(crate) const ROWS: [Row; 12] = [
    Row {
        name: "gate",
        title: "What the gate costs a signal",
        method: "Two builds of one program, with the gate and with its question and lock compiled out, send the same \
                 signals in turn: 200,000 users who stay, spread among those who left, each in one cohort and three \
                 communities, on 1,024 items; nothing is written and nothing runs in the background.",
        chart: Some(ChartOf { name: "gate", x: "users who left", y: "time with the gate / without" }),
    },
    Row {
        name: "ingest",
        title: "Signals against a bare map",
        method: "`signal` with batched durability on a file, with all it does: gate, scopes, receipt, log, checkpoints, \
                 runs by user. Against it the five updates of the same signals on a DashMap in memory with a fast hasher \
                 and 256 shards.",
        chart: Some(ChartOf { name: "ingest", x: "items", y: "signals/s" }),
    },
    Row {
        name: "engines",
        title: "Signals against other engines",
        method: "The same signals, round by round: each engine keeps a count and a sum of weights for every aggregate.",
        chart: None,
    },
    Row {
        name: "delay",
        title: "Delay of a signal at a steady pace",
        method: "One caller sends a signal when it is due, 200,000 a second, batched, on a file, while checkpoints and \
                 runs are made beside it.",
        chart: None,
    },
    Row {
        name: "immediate",
        title: "Signals that are on disk at once",
        method: "`Immediate` durability: every call waits for its commit.",
        chart: None,
    },
    Row {
        name: "leave",
        title: "Leaves",
        method: "`leave_community_layer` of users who never left before, on a file; in turn with commits of one record in a \
                 bare redb file with the same settings.",
        chart: Some(ChartOf { name: "leave", x: "users who left before", y: "ms a leave, median" }),
    },
    Row {
        name: "restore",
        title: "Who left, after an open",
        method: "Files in which many have left, opened without the check of pages.",
        chart: Some(ChartOf { name: "restore", x: "users who left", y: "ms an open" }),
    },
    Row {
        name: "open",
        title: "Open",
        method: "Files of signals with as many aggregates, opened after a close, and after a SIGKILL in the middle of \
                 signals.",
        chart: Some(ChartOf { name: "open", x: "signals and aggregates", y: "ms an open" }),
    },
    Row {
        name: "top",
        title: "The best of a scope",
        method: "`top_items` with k = 10 in memory, and SQLite with the scores of one moment in a covering index: asked \
                 again and again while nothing changes, and with a signal between every two questions.",
        chart: Some(ChartOf { name: "top", x: "items", y: "us a question" }),
    },
    Row {
        name: "history",
        title: "A user's history",
        method: "`history` read to its end, of users with 100 signals each, spread over the whole log.",
        chart: Some(ChartOf { name: "history", x: "signals", y: "ms a history" }),
    },
    Row {
        name: "memory",
        title: "Memory",
        method: "The growth of a fresh process by an open.",
        chart: Some(ChartOf { name: "memory", x: "leavers or aggregates", y: "bytes each" }),
    },
    Row {
        name: "disk",
        title: "Disk",
        method: "Closed files once the background has caught up, as the engine counts their tables.",
        chart: None,
    },
];
