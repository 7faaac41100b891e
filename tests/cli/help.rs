//! Help of commands, and slips in their arguments.

use super::{fails, ok, write};

#[test]
fn long_help_has_examples_and_exit_codes_and_short_help_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let all = ok(folder.path(), &["--help"]);
    let commands = all.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    for command in commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let (long, short) = (ok(folder.path(), &[command, "--help"]), ok(folder.path(), &[command, "-h"]));
        let examples = long.split_once("Examples:\n").unwrap().1;
        assert!(examples.lines().next().unwrap().contains(command), "{long}");
        assert!(examples.contains("Exit codes"), "{long}");
        assert!(!short.contains("Exit codes") && short.lines().count() < 70, "{short}");
        assert!(short.lines().next().unwrap().len() <= 82, "{short}");
    }
    assert!(all.contains("Exit codes"), "{all}");
    assert!(ok(folder.path(), &["--version"]).starts_with("gristmill 0."));
}

#[test]
fn both_spellings_name_the_command() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ok(folder.path(), &["tokenize", "-h"]), ok(folder.path(), &["tokenise", "-h"]));
    assert!(ok(folder.path(), &["--help"]).contains("tokenise         Writes text as token ids"));
}

#[test]
fn slips_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "c.jsonl", "{\"text\": \"a b c\"}\n");
    write(folder, "p.yaml", "source: {range: 1000}\nstages: [{batch: 1}]\n");
    for (slip, meant) in [("rn", "'run'"), ("tokenis", "'tokenise'"), ("inpsect", "'inspect'")] {
        let (code, text) = fails(folder, &[slip]);
        assert!(code == 2 && text.contains(&format!("a similar subcommand exists: {meant}")), "{text}");
    }
    assert!(!fails(folder, &["nothing-like-it"]).1.contains("similar"));
    if cfg!(not(feature = "top")) {
        assert!(fails(folder, &["top"]).1.contains("a build with `--features top`"));
    }
    assert!(fails(folder, &["stages", "tokenize"]).1.contains("did you mean `tokenise`?"));
    assert!(fails(folder, &["inspect", "c.json"]).1.contains("did you mean `c.jsonl`?"));
    assert!(fails(folder, &["run", "p.yaml", "--threads", "0"]).1.contains("is 0, and must be at least 1"));
    // The name is wrong in all rows, a value in one.
    let (_, text) = fails(folder, &["bench", "p.yaml", "--sweep", "threds=1,2"]);
    assert_eq!(text.matches("`threds`").count(), 1, "{text}");
    assert!(text.contains("did you mean --sweep threads=…?"), "{text}");
    let rows = ok(
        folder,
        &["bench", "p.yaml", "--runs", "1", "--warmup", "1", "--steps", "5", "--inline", "--sweep", "batch_size=two,1"],
    );
    assert!(rows.contains("failed"), "{rows}");
}
