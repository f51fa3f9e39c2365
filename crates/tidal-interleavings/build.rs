//! Builds the sources of the database for a scheduler.

fn main() {
    println!("cargo::rustc-cfg=shuttle");
}
