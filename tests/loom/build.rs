//! Enables the model in this package alone: as a flag of the compiler, the cfg would compile every dependency again.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(any()))");
    println!("cargo::rustc-cfg=loom");
}
