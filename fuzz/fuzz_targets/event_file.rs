//! See `tidal_fuzz::event_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidal_fuzz::event_file(data));
