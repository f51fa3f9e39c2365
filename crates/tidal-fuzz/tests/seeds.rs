//! Every committed seed through its target, on any toolchain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

use std::path::{Path, PathBuf};

use tidal_fuzz::{TARGETS, is_row};

/// As many seeds as a target has at least.
const MIN_SEEDS: usize = 20;

fn seeds_of(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

#[test]
fn every_seed_keeps_every_promise() {
    for (name, target) in TARGETS {
        let mut seed_count = 0;
        for seed in std::fs::read_dir(seeds_of(name)).unwrap() {
            let path = seed.unwrap().path();
            println!("{name}: {}", path.display());
            target(&std::fs::read(&path).unwrap());
            seed_count += 1;
        }
        assert!(seed_count >= MIN_SEEDS, "{name} has {seed_count} seeds");
    }
}

#[test]
fn every_seed_of_rows_is_a_row() {
    for seed in std::fs::read_dir(seeds_of("rows")).unwrap() {
        let path = seed.unwrap().path();
        assert!(is_row(&std::fs::read(&path).unwrap()), "{} is refused", path.display());
    }
}

#[test]
fn every_seed_cut_short_or_flipped_keeps_every_promise() {
    for (name, target) in TARGETS {
        for seed in std::fs::read_dir(seeds_of(name)).unwrap() {
            let bytes = std::fs::read(seed.unwrap().path()).unwrap();
            // A few places spread over the file: what is near a seed is likelier to decode than what is not.
            for place in (0..bytes.len()).step_by((bytes.len() / 6).max(1)) {
                let (kept, _) = bytes.split_at(place);
                target(kept);
                let mut flipped = bytes.clone();
                flipped.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << (place % 8));
                target(&flipped);
            }
        }
    }
}
