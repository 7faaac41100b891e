//! What of a bench is asked for: `cargo bench -p benches --bench NAME -- PART …`.

/// Whether a part is, which it also is where none is named.
pub(crate) fn wanted(name: &str) -> bool {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    names.is_empty() || names.iter().any(|n| name.contains(n.as_str()))
}
