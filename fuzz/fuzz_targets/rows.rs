//! See `tidal_fuzz::rows`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidal_fuzz::rows(data));
