//! See `tidal_fuzz::operations`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidal_fuzz::operations(data));
