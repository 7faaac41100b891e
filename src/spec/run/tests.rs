//! Run options read from texts.

use super::*;

fn read(options: &[(&str, &str)]) -> RunOptions {
    RunOptions::from_texts(options.iter().copied()).unwrap()
}

fn refused(options: &[(&str, &str)]) -> String {
    let error = RunOptions::from_texts(options.iter().copied()).unwrap_err();
    format!("{} | {}", error.message(), error.help_text().unwrap_or("-"))
}

#[test]
fn evaluators_replace_evaluators_of_another_kind() {
    let base = || read(&[("workers", "2"), ("buffer", "7"), ("part", "1/4")]);
    assert_eq!(read(&[("threads", "3")]).over(base()), read(&[("threads", "3"), ("buffer", "7"), ("part", "1/4")]));
    let more = read(&[("ram_budget", "1GiB"), ("inline", "false")]).over(base());
    assert_eq!(more.processes.workers.map(|count| count.0), Some(2));
    let tuned = read(&[("max_workers", "3")]).over(base()).processes;
    assert_eq!((tuned.workers, tuned.max_workers.map(|count| count.0)), (None, Some(3)));
    let inline = read(&[("inline", "true"), ("buffer", "1")]).over(read(&[("threads", "auto")])).evaluators;
    assert_eq!((inline.threads, inline.inline, inline.buffer.map(|count| count.0)), (None, Some(true), Some(1)));
}

#[test]
fn wrong_options_are_refused_by_their_names() {
    assert!(refused(&[("workers", "1"), ("threads", "1")]).starts_with("threads and workers exclude each other"));
    assert!(refused(&[("workers", "1"), ("max_workers", "1")]).starts_with("workers and max_workers exclude"));
    assert_eq!(refused(&[("threads", "0")]), "threads: is 0, and must be at least 1 | -");
    assert!(refused(&[("ram_budget", "much")]).starts_with("ram_budget: `much` is no amount of memory"));
    assert!(refused(&[("ram_budget", "20")]).contains("did you mean 20MiB?"));
    assert!(refused(&[("inline", "yes")]).starts_with("inline: needs true or false"));
    assert!(refused(&[("worker", "1")]).ends_with("did you mean `workers`?"));
    assert!(refused(&[("part", "3")]).contains("part"));
    assert!(RunOptions::from_texts([("metrics", "[::1]:9464")]).is_ok());
    for name in ["deadline", "timeout"] {
        assert!(refused(&[(name, "0")]).contains("more than 0 seconds"));
    }
}

#[test]
fn a_file_and_texts_give_equal_options() {
    let samples = [
        ("threads", "auto"),
        ("inline", "false"),
        ("buffer", "3"),
        ("timeout", "2.5"),
        ("workers", "2"),
        ("max_workers", "2"),
        ("threads_per_worker", "2"),
        ("ram_budget", "1GiB"),
        ("worker_heap", "64MiB"),
        ("max_element", "1MiB"),
        ("deadline", "none"),
        ("retries", "2"),
        ("on_poison", "skip"),
        ("tune", "false"),
        ("part", "1/3"),
        ("keys", "/k"),
        ("record_keys", "true"),
        ("deal", "{balanced: {d_model: 64}}"),
        ("guard", "/g"),
        ("guard_timeout", "1.5"),
        ("on_failed_element", "pad"),
        ("edits", "/e.yaml"),
        ("metrics", "9464"),
        ("top", "true"),
        ("record", "/r.gmr"),
        ("trace", "/t.json"),
        ("ledger", "/r.ledger"),
    ];
    // A limit is refused in a file that chooses no policy.
    let limit = ("failed_element_limit", "2");
    let names: Vec<_> = samples.iter().chain([&limit]).map(|sample| sample.0).collect();
    assert!(RunOptions::all().all(|option| names.contains(&option.name)) && names.len() == 28);
    for sample in samples {
        let text = format!("source: {{range: 5}}\nexecutor: {{{}: {}}}\n", sample.0, sample.1);
        let pipeline = crate::spec::Pipeline::from_text(text, crate::spec::Format::Yaml, ".").unwrap();
        assert_eq!(pipeline.run_options(), read(&[sample]), "{sample:?}");
        assert_ne!(read(&[sample]), RunOptions::default(), "{sample:?}");
    }
}

#[test]
fn every_option_is_described_in_a_line_and_more() {
    assert_eq!(RunOptions::all().count(), 28);
    for option in RunOptions::all() {
        let doc = option.doc();
        let line = doc.split(". ").next().unwrap();
        assert!(line.len() < 160 && option.is_optional && option.default.is_none(), "{}: {line}", option.name);
    }
}

#[test]
fn edits_are_read_from_a_list_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("edits.yaml"), text).unwrap();
    let edits = |value: &str| {
        let text = format!("source: {{range: 5}}\nexecutor: {{edits: {value}}}\n");
        let pipeline = crate::spec::Pipeline::from_text(text, crate::spec::Format::Yaml, folder.path())?;
        pipeline.run_options().program.edits.unwrap().edits()
    };
    let expected = crate::Edits::default().skip(3, 2).skip(7, 1);
    assert_eq!(edits("[{at: 3, skip: 2}, {at: 7, skip: 1}]").unwrap(), expected);
    write("- {at: 3, skip: 2}\n- at: 7\n  skip: 1\n");
    assert_eq!(edits("edits.yaml").unwrap(), expected);
    let mixed = crate::Edits::default().mix_over(3, [("web", 7.0), ("books", 0.5)], 9).remove(12, ["web"]);
    assert_eq!(edits("[{at: 3, mix: {web: 7, books: 0.5}, over: 9}, {at: 12, remove: web}]").unwrap(), mixed);
    let sized = crate::Edits::default().global_batch(3, 12);
    assert_eq!(edits("[{at: 3, global_batch: 12}]").unwrap(), sized);
    write("# No edit yet.\n\n");
    assert_eq!(edits("edits.yaml").unwrap(), crate::Edits::default());
    let refused = |text: &str| {
        write(text);
        edits("edits.yaml").unwrap_err().to_string()
    };
    let file = folder.path().join("edits.yaml").display().to_string();
    for (text, message) in [
        ("- {at: 3, skip: 2}\n- {at: 2, skip: 1}\n", "edit 1 is at batch 2, before batch 3"),
        ("- {at: 3, skipped: 2}\n", "line 1"),
        ("- {at: 3, skip: 0}\n", "must be at least 1"),
        ("- {at: -3, skip: 1}\n", "-3 is less than 0"),
        ("- {at: 3}\n", "an edit without a change"),
        ("- {at: 3, skip: 1, remove: [web]}\n", "an edit with two changes"),
        ("- {at: 3, mix: {web: -1}}\n", "the weight of `web` is -1, which is not a finite number, 0 or above"),
        ("- {at: 3, remove: [web], over: 2}\n", "`over` is the length of a transition of `mix`"),
        ("at: [\n", "edits.yaml"),
    ] {
        let error = refused(text);
        assert!(error.contains(message) && error.contains(&file), "{error}");
    }
    assert!(edits("missing.yaml").unwrap_err().to_string().contains("missing.yaml"));
}
