#![no_main]

libfuzzer_sys::fuzz_target!(
    // Panics of the `parquet` crate are contained and become errors, so they must not end the run; a panic that gets
    // out of the target still does.
    init: std::panic::set_hook(Box::new(|_| ())),
    |data: &[u8]| gristmill::fuzzing::run("parquet", data)
);
