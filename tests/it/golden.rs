//! What the real Grain library gave, element by element: the vectors in the folder `GRISTMILL_GOLDEN`.

mod order;
mod packing;

/// The parsed file `name`, or `None` (and a message) where the vectors are not there.
fn vectors(name: &str) -> Option<serde_json::Value> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/golden");
    let folder = std::env::var("GRISTMILL_GOLDEN").unwrap_or_else(|_| default.to_owned());
    let path = std::path::Path::new(&folder).join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))),
        Err(error) => {
            println!("skipped: {}: {error}; set GRISTMILL_GOLDEN to the folder with the vectors", path.display());
            None
        }
    }
}
