//! See `tidal_fuzz::record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidal_fuzz::record(data));
