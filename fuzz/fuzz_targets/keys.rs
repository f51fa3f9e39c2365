//! See `tidal_fuzz::keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidal_fuzz::keys(data));
