#![no_main]

libfuzzer_sys::fuzz_target!(
    // Panics of the `parquet` crate are caught and become errors, so they must not end the run. A panic that escapes
    // the target still ends it.
    init: std::panic::set_hook(Box::new(|_| ())),
    |data: &[u8]| gristmill::fuzzing::run("parquet", data)
);
