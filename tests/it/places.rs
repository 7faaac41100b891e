//! Counts of places that name a format, a store, a stage, or options of a run, of methods that wrappers of a stage
//! forward, of fields, and of lines that depend on features or on systems. A count may only fall: whoever lowers one lowers the
//! committed value, too.

use std::path::{Path, PathBuf};

/// Folders of the repository with text by hand.
const FOLDERS: [&str; 10] =
    [".ci", ".github", "benches", "examples", "fuzz", "python", "release", "src", "tests", "Cargo.toml"];
/// What a program writes, what a run leaves, figures, and the history.
const NOT_BY_HAND: [&str; 11] = [
    "__pycache__",
    "benches/README.md",
    "benches/record/",
    "python/gristmill/_gristmill.pyi",
    "python/gristmill/_options.py",
    "python/gristmill/pipeline.schema.json",
    "python/tests/locks/",
    "release/api.txt",
    "src/spec/reference.md",
    "target/",
    "tests/it/places.rs",
];
/// Options of a run with names of their own.
const OPTIONS: [&str; 10] = [
    "failed_element_limit",
    "guard_timeout",
    "max_element",
    "max_workers",
    "on_failed_element",
    "on_poison",
    "ram_budget",
    "record_keys",
    "threads_per_worker",
    "worker_heap",
];

#[test]
fn counts_of_places_only_fall() {
    if !Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci").exists() {
        println!("skipped: a package has not all files");
        return;
    }
    let files = files();
    assert!(files.len() > 1000, "{}", files.len());
    let naming = |word: &str, own: &str| {
        let names = |(path, text): &&(PathBuf, String)| !path.to_string_lossy().starts_with(own) && text.contains(word);
        files.iter().filter(names).count()
    };
    // Files of the library in which several options stand side by side.
    let lists = files.iter().filter(|(path, text)| {
        let is_library = path.starts_with("src") || path.starts_with("python/gristmill");
        let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        let count = OPTIONS.iter().filter(|option| text.contains(*option)).count();
        is_library && !is_test && !path.starts_with("src/spec/run") && count >= 4
    });
    let lists: Vec<_> = lists.map(|(path, _)| path.display().to_string()).collect();
    // Files of the library that depend on the feature of a format.
    let list = include_str!("../../src/source/formats/mod.rs");
    let lines = list.lines().filter_map(|line| line.trim().split_once(" = ")?.1.split_once(" if "));
    let folder_of = |text: &'static str| text.split(' ').next().unwrap_or_default();
    let features = lines.map(|(folder, rest)| (folder_of(folder), rest.split('"').nth(1).unwrap_or_default()));
    let features: Vec<_> = features.filter(|(_, feature)| !matches!(*feature, "" | "compress")).collect();
    assert!(features.contains(&("bagz", "bagz")), "{features:?}");
    let depends = |folder: &str, feature: &str| {
        let of_feature = format!("feature = \"{feature}\"");
        let depends = |(path, text): &&(PathBuf, String)| {
            let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
            let is_list = path.ends_with("source/mod.rs") || path.ends_with("source/formats/mod.rs");
            let is_own = path.starts_with(format!("src/source/{folder}"));
            path.starts_with("src") && !is_test && !is_list && !is_own && text.contains(&of_feature)
        };
        files.iter().filter(depends).count()
    };
    let dependent = features.iter().map(|(folder, feature)| depends(folder, feature)).sum();
    // Lines of the library that are compiled for some features or systems alone.
    let is_gated = |path: &Path| {
        let name = path.display().to_string();
        name.starts_with("src/") && name.ends_with(".rs") && !name.contains("/tests") && !name.ends_with("tests.rs")
    };
    let lines = |text: &str| text.lines().filter(|line| line.contains("cfg(") && !line.contains("cfg(test)")).count();
    let gates: usize = files.iter().filter(|(path, _)| is_gated(path)).map(|(_, text)| lines(text)).sum();
    // Each method of the trait is forwarded by every wrapper; a fact of a stage is a field of its node.
    let stage = files.iter().find(|(path, _)| path.ends_with("src/dataset/stage.rs")).map(|(_, text)| text.as_str());
    let methods = stage.and_then(|text| text.split_once("\npub trait stage {")?.1.split_once("\n}"));
    let methods = methods.expect("the trait of all stages").0.matches("    fn ").count();
    let source = super::floors::source();
    let all = super::floors::all_files(&source);
    let plans = all.iter().filter(|file| {
        let path = file.strip_prefix(&source).unwrap();
        let is_own = PLANS.iter().any(|folder| path.starts_with(folder));
        let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        let text = super::floors::without_tests(&std::fs::read_to_string(file).unwrap());
        !is_own && !is_test && OF_PLANS.iter().any(|word| text.contains(word))
    });
    let plans: Vec<_> = plans.map(|file| file.display().to_string()).collect();
    let texts = all.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let structs = texts.flat_map(|text| structs(&text)).collect::<Vec<_>>();
    assert!(structs.len() > 1000, "{}", structs.len());
    let (fields, largest) = structs.into_iter().max().expect("there are structs");
    let counts = [
        ("files outside its folder that name the format bagz", naming("bagz", "src/source/bagz"), 8),
        ("files outside its folder that name the store azure", naming("azure", "src/store/azure"), 7),
        (
            "files outside its own that name the stage block_shuffle",
            naming("block_shuffle", "src/dataset/map/block_shuffle"),
            20,
        ),
        (
            "files of the library that depend on the feature of a format of another folder, over all formats",
            dependent,
            16,
        ),
        ("files of the library that list options of a run", lists.len(), 1),
        ("lines of the library for some features or systems alone, outside of tests", gates, 484),
        ("methods of the trait of all stages", methods, 2),
        ("files of the library outside the folders of plans, keys and parts that name plans", plans.len(), 21),
        ("fields of the largest struct: group fields that belong together", fields, 15),
    ];
    for (what, count, committed) in counts {
        assert_eq!(
            count, committed,
            "{what}: describe it once, or lower the value here; lists are {lists:?}, plans {plans:?}, the largest struct is {largest}"
        );
    }
}

/// Folders of plans, keys and parts.
const PLANS: [&str; 3] = ["dataset/plan", "keys", "part"];

/// Words that name plans.
const OF_PLANS: [&str; 6] = ["dataset::plan", "PlanOf", "PlanPass", "PlannedRows", "Planning", "StandIn"];

/// Returns the number of fields and the name of each struct in `text`.
fn structs(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        let Some((before, head)) = start.split_once("struct ").filter(|_| line.ends_with('{')) else { continue };
        if before.is_empty() || before.starts_with("pub") {
            let name = head.chars().take_while(|c| c.is_alphanumeric()).collect();
            let end = format!("{}}}", &line[..line.len() - start.len()]);
            let fields = lines.by_ref().take_while(|line| *line != end).map(str::trim_start);
            let fields = fields.filter(|line| !line.starts_with(['/', '#']) && line.contains(": "));
            found.push((fields.count(), name));
        }
    }
    found
}

/// Files of text by hand, with their texts in lower case.
fn files() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut open, mut found) = (FOLDERS.map(|name| root.join(name)).to_vec(), Vec::new());
    while let Some(path) = open.pop() {
        let below = path.strip_prefix(root).unwrap().to_owned();
        let name = below.to_string_lossy();
        if NOT_BY_HAND.iter().any(|part| format!("{name}/").contains(part) || *name == **part) {
            continue;
        }
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((below, text.to_lowercase()));
        }
    }
    found
}
