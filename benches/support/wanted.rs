//! Selection of the parts of a bench: `cargo bench -p benches --bench NAME -- PART …`.

/// Returns whether a part is selected. Without arguments all parts are selected.
pub(crate) fn wanted(name: &str) -> bool {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    names.is_empty() || names.iter().any(|n| name.contains(n.as_str()))
}
