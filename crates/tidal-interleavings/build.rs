//! Builds the sources of the database for a scheduler.

fn main() {
    println!("cargo::rustc-cfg=shuttle");
    // A feature of the database that this package has no use for.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"bench-without-gate\"))");
}
