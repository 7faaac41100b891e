use super::*;
use crate::dataset::{IterDatasetExt, Role, Stage, estimate};
use crate::exec::Executor;
use crate::loader::Load;
use crate::part::Part;

/// Builds a pipeline, which the schema then accepts, too.
fn build(text: &str) -> Result<Vec<Element>> {
    let pipeline = Pipeline::from_text(text, Format::Yaml, ".")?;
    let dataset = pipeline.build()?;
    assert!(schema::tests::accepts_file(&pipeline.root), "{text}");
    dataset.collect()
}

fn index(elements: &[Element]) -> Vec<i64> {
    elements.iter().map(|e| e.array("index").unwrap().as_i64().unwrap()).collect()
}

fn error(text: &str) -> String {
    let error = build(text).unwrap_err();
    format!("{error} | {}", error.help_text().unwrap_or("-"))
}

const RANGE: &str = "source: {range: {stop: 5}}\n";

#[test]
fn three_formats_give_one_pipeline() {
    let yaml = "source:\n  range: 5\nstages:\n  - filter: {column: index, max: 2}\n  - rename: {index: n}\n";
    let toml =
        "source.range = 5\n[[stages]]\nfilter = {column = 'index', max = 2}\n[[stages]]\nrename = {index = 'n'}\n";
    let json = r#"{"source": {"range": 5}, "stages": [{"filter": {"column": "index", "max": 2}}, {"rename": {"index": "n"}}]}"#;
    let lines = [(yaml, Format::Yaml), (toml, Format::Toml), (json, Format::Json)].map(|(text, format)| {
        let pipeline = Pipeline::from_text(text, format, ".").unwrap();
        let built = pipeline.build().unwrap();
        assert_eq!(built.collect().unwrap().len(), 3);
        (&built as &dyn crate::Stage).lines()
    });
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[0], ["range(0, 5, 1)", "to_element(index)", "filter(index, max=2)", "rename(index=n)", "to_iter"]);
}

#[test]
fn filters_after_the_border_stay_in_front_of_it() {
    let text = format!("{RANGE}stages: [to_iter, {{filter: {{column: index, min: 2}}}}]");
    let built = Pipeline::from_text(text, Format::Yaml, ".").unwrap().build().unwrap();
    assert_eq!((&built as &dyn crate::Stage).lines().last().unwrap(), "to_iter");
    assert_eq!(index(&built.collect().unwrap()), [2, 3, 4]);
}

#[test]
fn memory_records_have_typed_columns() {
    let text = "source: {memory: {records: [{text: ab, ids: [1, 2], x: 1.5}, {text: c, ids: [], x: 2}]}}\n\
                stages: [{filter: {column: text, min_length: 2}}, {select_columns: [ids, x]}]";
    let elements = build(text).unwrap();
    assert_eq!(elements.len(), 1);
    assert_eq!(elements[0].array("ids").unwrap().as_slice::<i64>().unwrap(), [1, 2]);
    assert_eq!(elements[0].len(), 2);
}

#[test]
fn slips_are_named() {
    let stage = |s: &str| error(&format!("{RANGE}stages:\n  - {s}\n"));
    assert_eq!(stage("filtr: {column: index}"), "line 3: stages[0]: unknown stage `filtr` | did you mean `filter`?");
    assert_eq!(
        stage("filter: {column: indx, min: 1}"),
        "line 3: stages[0].filter.column: no column `indx`; there are index | did you mean `index`?"
    );
    assert_eq!(
        stage("filter: {column: index, mni: 1}"),
        "line 3: stages[0].filter: needs a condition: one of min_length, max_length, min, max, equals | -"
    );
    assert_eq!(
        stage("filter: {column: index, min: 1, mxa: 1}"),
        "line 3: stages[0].filter: unknown key `mxa` | did you mean `max`?"
    );
    assert_eq!(stage("seed: one"), "line 3: stages[0].seed: needs a whole number, got the text \"one\" | -");
    assert_eq!(error("source: {rnge: 3}"), "line 1: source: unknown source `rnge` | did you mean `range`?");
    assert_eq!(error("sorce: {range: 3}"), "line 1: unknown key `sorce` | did you mean `source`?");
    assert_eq!(error("[1]"), "line 1: a pipeline file is a mapping with `source` and `stages`, got a list | -");
    assert_eq!(error(&format!("{RANGE}stages: 3")), "line 2: stages: needs a list of stages, got the number 3 | -");
    assert_eq!(
        stage("to_iter\n  - to_iter"),
        "line 4: stages[1]: the elements are a stream already: use `to_iter` once | -"
    );
}

#[test]
fn a_list_of_too_many_stages_is_refused_before_a_stage_is_built() {
    let text = |n: usize| format!("{RANGE}stages:\n{}", "  - shuffle: {seed: 1}\n".repeat(n));
    assert!(build(&text(200)).is_ok());
    assert_eq!(error(&text(10_000)), "line 1003: stages[1000]: 10000 stages in one list, limit 1000 | -");
}

#[test]
fn settings_are_read_and_checked() {
    let parse = |s: &str| Pipeline::from_text(format!("{RANGE}{s}"), Format::Yaml, ".");
    let settings = parse("name: n\nexecutor: {threads: 3, buffer: 4}\ncheckpoint: {folder: c, every: 5}").unwrap();
    let settings = settings.settings().clone();
    assert_eq!((settings.run.executor(), settings.run.buffer()), (Some(Executor::Threads(3)), Some(4)));
    assert_eq!(settings.checkpoint.unwrap().every, Some(5));
    assert_eq!(parse("executor: inline").unwrap().run_options().executor(), Some(Executor::Inline));
    let error = |s: &str| parse(s).unwrap_err().to_string();
    assert_eq!(error("executor: {threads: 0}"), "line 2: executor.threads: is 0, and must be at least 1");
    assert!(error("executor: {threads: 1, inline: true}").contains("exclude each other"));
    let hosts = parse("executor: {part: {index: 1, count: 4}, deal: {shadow: {d_model: 8, micro_steps: 2}}}").unwrap();
    assert_eq!(hosts.run_options().part(), Some(&Part::of(1, 4)));
    let written = [("part", "1/4"), ("deal", "{shadow: {d_model: 8, micro_steps: 2}}")];
    assert_eq!(hosts.run_options(), RunOptions::from_texts(written).unwrap());
    assert_eq!(parse("executor: {part: 1/4}").unwrap().run_options().part(), Some(&Part::of(1, 4)));
    assert!(error("executor: {deal: {shadow: {d_modl: 8}}}").starts_with("line 2: executor.deal.shadow: unknown key"));
    assert!(parse("executor: {on_failed_element: pad, failed_element_limit: 9}").is_ok());
    assert!(error("executor: {failed_element_limit: 9}").contains("needs `on_failed_element: pad`"));
    assert!(parse("executor: {max_workers: 3, worker_heap: 64MiB, deadline: none, on_poison: skip}").is_ok());
    assert!(error("executor: {threads: 1, max_workers: 3}").contains("exclude each other"));
    assert!(
        error("executor: {workers: 1, max_workers: 3}")
            .contains("`executor.workers` and `executor.max_workers` exclude")
    );
}

#[test]
fn a_pipeline_travels_as_its_text() {
    let pipeline = Pipeline::from_text(format!("{RANGE}name: n"), Format::Yaml, ".").unwrap();
    let json = serde_json::to_string(&pipeline).unwrap();
    let other: Pipeline = serde_json::from_str(&json).unwrap();
    assert_eq!(other.build().unwrap().collect().unwrap(), pipeline.build().unwrap().collect().unwrap());
    assert!(serde_json::from_str::<Pipeline>(&json.replace("range", "rnge")).unwrap().build().is_err());
    assert!(serde_json::from_str::<Pipeline>(&json.replace("source", "sorce")).is_err());
}

#[test]
fn order_stages_do_what_the_methods_do() {
    let run = |stages: &str| index(&build(&format!("{RANGE}stages: [{stages}]")).unwrap());
    assert_eq!(run("{slice: {start: 1, stop: -1}}"), [1, 2, 3]);
    assert_eq!(run("{shard: {index: 1, count: 2}}"), [1, 3]);
    assert_eq!(run("{repeat: 2}, {slice: {start: 3, stop: 7}}"), [3, 4, 0, 1]);
    assert_eq!(run("{select_indices: [4, 0]}"), [4, 0]);
    let batches = build(&format!("{RANGE}stages: [{{batch: {{batch_size: 2, remainder: drop}}}}, to_iter]")).unwrap();
    assert_eq!(batches[1].array("index").unwrap().as_slice::<i64>().unwrap(), [2, 3]);
    assert_eq!(batches.len(), 2);
    assert_eq!(
        error(&format!("{RANGE}stages:\n  - batch: 0")).split(" | ").next().unwrap(),
        "line 3: the batch size is 0, and must be 1 or more"
    );
}

#[test]
fn parts_are_sources_with_or_without_stages() {
    let text =
        "source:\n  concatenate:\n    - range: 2\n    - source: {range: 9}\n      stages: [{slice: {start: 7}}]\n";
    assert_eq!(index(&build(text).unwrap()), [0, 1, 7, 8]);
    let slip = text.replace("stages", "stags");
    assert_eq!(error(&slip), "line 5: source.concatenate[1]: unknown key `stags` | did you mean `stages`?");
}

#[test]
fn a_batch_at_the_border_runs_in_front_of_it() {
    use crate::report::Place;
    let place = |stages: &str, at: usize| {
        let text = format!("source: {{range: 20000}}\nstages: [{stages}]");
        let pipeline = Pipeline::from_text(text, Format::Yaml, ".").unwrap().build().unwrap();
        let mut loader = pipeline.loader().threads(2).build().unwrap();
        assert_eq!(loader.by_ref().map(Result::unwrap).count(), 2500);
        let report = loader.report();
        assert_eq!((report.stages[at].name.as_str(), report.stages[at].elements), ("batch", 2500));
        report.stages[at].place
    };
    assert_eq!(place("{batch: 8}", 3), Place::Threads);
    assert_eq!(place("to_iter, {batch: {batch_size: 8, remainder: pad}}", 3), Place::Threads);
    // What may drop elements leaves the batch to the one thread that sees them all.
    assert_eq!(place("{filter: {column: index, min: 0}}, {batch: 8}", 4), Place::Suffix);
    assert_eq!(place("{limit: 20000}, {batch: 8}", 4), Place::Suffix);
}

#[test]
fn streams_batch_limit_and_combine() {
    let run = |stages: &str| build(&format!("{RANGE}stages: [{stages}]")).unwrap();
    assert_eq!(run("{batch: 2}").len(), 3);
    assert_eq!(run("{filter: {column: index, min: 1}}, {batch: {batch_size: 3, remainder: drop}}").len(), 1);
    let padded = run("{batch: {batch_size: 4, remainder: pad, pad_value: -1}}, {limit: 2}");
    assert_eq!(padded[1].array("index").unwrap().as_slice::<i64>().unwrap(), [4, -1, -1, -1]);
    assert_eq!(run("to_iter, {repeat: 2}, {batch: 2}, {rebatch: 3}").len(), 4);
    let parts = "source:\n  zip:\n    - range: 3\n    - range: {stop: 3, column: b}\n";
    assert_eq!(build(parts).unwrap()[2].array("b").unwrap().as_i64(), Some(2));
    assert!(error(&parts.replace(", column: b", "")).contains("two parts have a column `index`"));
    let lanes = "source: {interleave: {cycle: 2, parts: [{range: 2}, {range: {start: 5, stop: 7}}]}}\n";
    assert_eq!(index(&build(lanes).unwrap()), [0, 5, 1, 6]);
    // The filter runs inside the lanes: it leaves the turns of the others as they are.
    let lanes = "source: {lanes: {count: 2, parts: [{range: 3}, {range: {start: 5, stop: 7}}]}}\n";
    assert_eq!(index(&build(lanes).unwrap()), [0, 5, 1, 6, 2]);
    assert_eq!(index(&build(&format!("{lanes}stages: [filter: {{column: index, min: 1}}]")).unwrap()), [1, 5, 2, 6]);
    assert_eq!(build(&format!("{lanes}stages: [batch: 2]")).unwrap().len(), 3);
    assert!(error(&lanes.replace("count: 2", "count: 0")).contains("0 lanes, and there must be 1 to 1024"));
    assert_eq!(
        error(&format!("{RANGE}stages:\n  - batch: 2\n  - shard: {{index: 0, count: 2}}")),
        "line 4: stages[1].shard: `shard` needs random access, but here the elements are a stream | put `shard` before \
         `to_iter` and before the first stage that packs or batches"
    );
}

#[test]
fn it_says_how_many_indices_a_pass_reads() {
    let count = |stages: &str| {
        let text = format!("{RANGE}stages: [{stages}]");
        Pipeline::from_text(text, Format::Yaml, ".").unwrap().build_counted().unwrap().1
    };
    assert_eq!(count(""), Some(5));
    assert_eq!(count("{repeat: 2}, {batch: 2}, {limit: 1}"), Some(10));
    assert_eq!(count("{repeat: {}}, {batch: 2}"), None);
}

#[test]
fn a_border_skips_bad_records_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.jsonl"), "{\"index\": 1}\n{\"index\": }\n{\"index\": 3}\n").unwrap();
    let run = |border: &str| {
        let text = format!(
            "source: {{jsonl: a.jsonl}}\nstages:\n  - to_iter: {border}\n  - window_shuffle: {{window_size: 1, seed: 1}}"
        );
        Pipeline::from_text(text, Format::Yaml, dir.path()).unwrap().build().unwrap().collect()
    };
    assert_eq!(index(&run("{on_bad_record: skip}").unwrap()), [1, 3]);
    assert!(run("{on_bad_record: skip, bad_record_limit: 0}").is_err());
    assert!(run("{}").unwrap_err().to_string().contains("a.jsonl: line 2"));
}

#[cfg(feature = "compress")]
#[test]
fn bad_records_of_any_stream_are_skipped_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"index\": 1}\n{\"index\": }\n{\"index\": 2}\n{}}\n[\n{\"index\": 3}\n";
    std::fs::write(dir.path().join("a.jsonl"), text).unwrap();
    std::fs::write(dir.path().join("a.jsonl.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let run = |source: &str, stages: &str| {
        let text = format!("source: {{jsonl: {source}}}\nstages: [{stages}]");
        Pipeline::from_text(text, Format::Yaml, dir.path()).unwrap().build().unwrap().collect()
    };
    for source in ["a.jsonl", "a.jsonl.zst", "{paths: a.jsonl.zst, lanes: 2}"] {
        assert_eq!(index(&run(source, "skip_bad_records, limit: 9").unwrap()), [1, 2, 3], "{source}");
        let twice = run(source, "skip_bad_records: {limit: 3, consecutive: 2}, filter: {column: index, min: 2}");
        assert_eq!(index(&twice.unwrap()), [2, 3], "{source}");
        let error = run(source, "skip_bad_records: 2").unwrap_err().to_string();
        assert!(error.contains("2 bad records were skipped before it"), "{source}: {error}");
        let error = run(source, "skip_bad_records: {consecutive: 1}").unwrap_err().to_string();
        assert!(error.contains("1 bad records in a row were skipped before it"), "{source}: {error}");
    }
    let border = "to_iter: {on_bad_record: skip, consecutive_bad_record_limit: 1}";
    assert!(run("a.jsonl", border).unwrap_err().to_string().contains("1 bad records in a row"));
}

#[cfg(feature = "compress")]
#[test]
fn compressed_files_are_read_as_lanes() {
    let dir = tempfile::tempdir().unwrap();
    for k in 0..5 {
        let text: String = (0..=k).map(|n| format!("{{\"index\": {}}}\n", 10 * k + n)).collect();
        std::fs::write(dir.path().join(format!("{k}.jsonl.zst")), zstd::encode_all(text.as_bytes(), 1).unwrap())
            .unwrap();
    }
    std::fs::write(dir.path().join("plain.jsonl"), "{\"index\": 1}\n").unwrap();
    let run = |source: &str, stages: &str| {
        let text = format!("source: {{{source}}}\nstages: [{stages}]\n");
        Pipeline::from_text(text, Format::Yaml, dir.path()).unwrap().build()?.collect()
    };
    let two = "jsonl: {paths: '*.jsonl.zst', lanes: 2}";
    // Files 0, 2 and 4 in one lane, 1 and 3 in the other.
    let all = [0, 10, 20, 11, 21, 30, 22, 31, 40, 32, 41, 33, 42, 43, 44];
    assert_eq!(index(&run(two, "").unwrap()), all);
    let kept = run(two, "{filter: {column: index, min: 20}}, {limit: 4}").unwrap();
    assert_eq!(index(&kept), [20, 30, 21, 31]);
    assert_eq!(run("jsonl: {paths: '*.jsonl.zst', lanes: 9}", "").unwrap().len(), 15);
    assert_eq!(run("lines: {paths: '*.jsonl.zst', lanes: 3}", "batch: 3").unwrap().len(), 5);
    let error = run("jsonl: {paths: plain.jsonl, lanes: 2}", "").unwrap_err();
    assert!(error.to_string().contains("these files have random access"), "{error}");
}

#[test]
fn packing_is_declared_by_its_options() {
    let text = "source: {memory: {records: [{t: [1, 2, 3]}, {t: [4, 5]}, {t: [6]}]}}\nstages:\n  - ";
    let run = |stage: &str| build(&format!("{text}{stage}\n"));
    let rows =
        run("first_fit_pack: {length: {t: 4}, num_packing_bins: 2, shuffle_bins: false, padding: {t: -1}}").unwrap();
    assert_eq!(rows[1].array("t").unwrap().as_slice::<i64>().unwrap(), [4, 5, -1, -1]);
    assert_eq!(rows[0].array("t_segment_ids").unwrap().as_slice::<i32>().unwrap(), [1, 1, 1, 2]);
    let rows = run("concat_then_split_pack: {length: {t: 3}, names: maxtext}").unwrap();
    assert_eq!(rows[1].array("inputs").unwrap().as_slice::<i64>().unwrap(), [4, 5, 6]);
    let batches = run("length_buckets: {features: t, boundaries: [2, 4], batch: {tokens: 4}}").unwrap();
    assert_eq!(batches.len(), 2);
    let run = |remainder| {
        let stage = "length_buckets: {features: t, boundaries: [2, 4], batch: 2, remainder: ";
        run(&format!("{stage}{remainder}}}")).unwrap()
    };
    assert_eq!(run("drop").len(), 1);
    assert_eq!(run("pad")[1].array("t_lengths").unwrap().as_slice::<i32>().unwrap(), [3, 0]);
    assert_eq!(run("keep")[1].array("t_lengths").unwrap().as_slice::<i32>().unwrap(), [3]);
    let slip = error(&format!("{text}window_pack: {{length: {{tt: 4}}}}\n"));
    assert_eq!(slip, "line 3: stages[0].window_pack.length.tt: no column `tt`; there are t | did you mean `t`?");
    let slip = error(&format!("{text}window_pack: {{length: {{t: 4}}, over_long: spilt}}\n"));
    assert_eq!(
        slip,
        "line 3: stages[0].window_pack.over_long: `spilt` is none of error, split, drop | did you mean `split`?"
    );
}

#[test]
fn every_stage_says_what_it_may_hold() {
    let pack = "length: {t: 4}, over_long: split";
    let shuffle = "{window_shuffle: {window_size: 3, seed: 1}}";
    let stages = [
        format!("[{{window_pack: {{{pack}}}}}, {{batch: 2}}, {{rebatch: 3}}, limit: 9, repeat: 2, cache, {shuffle}]"),
        format!("[{{first_fit_pack: {{{pack}, num_packing_bins: 2}}}}]"),
        format!("[{{best_fit_pack: {{{pack}, num_packing_bins: 2}}}}]"),
        "[concat_then_split_pack: {length: {t: 4}}]".to_owned(),
        "[length_buckets: {features: t, boundaries: [4, 8], batch: 2}]".to_owned(),
    ];
    let part = "memory: {records: [{t: [1, 2, 3]}, {t: [4, 5]}, {t: [6]}]}";
    for source in [
        part.to_owned(),
        format!("mix: {{parts: [{part}, {part}]}}"),
        format!("interleave: {{cycle: 2, parts: [{part}, {part}]}}"),
        format!("lanes: {{count: 2, parts: [{part}, {part}]}}"),
    ] {
        for stages in &stages {
            let text = format!("{{source: {{{source}}}, stages: {stages}}}");
            let dataset = Pipeline::from_text(text, Format::Yaml, ".").unwrap().build().unwrap();
            let mut memory = estimate(&dataset, 2).into_iter();
            (&dataset as &dyn Stage).walk(&mut |_, stage| {
                let known = memory.next().unwrap().bytes;
                assert!(known.is_some() || stage.role() != Role::Stateful, "{} in {stages}", stage.name());
            });
        }
    }
}

mod mutations {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: &str = "name: n\nsource: {range: {stop: 5, step: 0x1}}\nstages:\n  - filter: &f {column: index, min: 1.5}\n  \
                          - {limit: 3}\n  - to_iter\nexecutor: {threads: 2}\n";

    fn sample(format: Format) -> String {
        match format {
            Format::Yaml => SAMPLE.to_owned(),
            Format::Toml => {
                "name = 'n'\nsource.range = {stop = 5}\n[[stages]]\nlimit = 1_0\n[executor]\nthreads = 2\n".into()
            }
            Format::Json => {
                r#"{"name": "n\u00e9", "source": {"range": 5}, "stages": [{"limit": 3}, "to_iter"], "x": 1.5}"#.into()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Damages a file: it is understood or refused, and never a panic.
        #[test]
        fn nothing_panics(
            format in prop::sample::select(vec![Format::Yaml, Format::Toml, Format::Json]),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, "[\\PC\n\t]{0,3}|[-:{}\\[\\]&*!|>'\"#,?%@=.~]{1,3}"), 1..6),
        ) {
            let mut text: Vec<char> = sample(format).chars().collect();
            for (at, cut, put) in edits {
                let at = at.index(text.len() + 1).min(text.len());
                let end = (at + cut).min(text.len());
                text.splice(at..end, put.chars());
            }
            let text: String = text.into_iter().collect();
            if let Ok(pipeline) = Pipeline::from_text(text, format, ".") {
                // Only what reads no files and stays small.
                match pipeline.build() {
                    Err(error) => prop_assert!(!error.message().is_empty()),
                    Ok(_) => prop_assert!(schema::tests::accepts_file(&pipeline.root)),
                }
            }
        }
    }
}

/// Shows that what is wrong anywhere in a file is told before what takes long is loaded: here both the files of data and the tokenizer could not be.
#[cfg(all(feature = "parquet", feature = "compress"))]
#[test]
fn the_whole_file_is_checked_before_anything_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.jsonl.gz", "tokenizer.json", "a.bin"] {
        std::fs::write(dir.path().join(name), "neither").unwrap();
    }
    std::fs::write(dir.path().join("packed.jsonl.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    let error = |text: &str| {
        let error = Pipeline::from_text(text, Format::Yaml, dir.path()).unwrap().build().unwrap_err();
        format!("{error} | {}", error.help_text().unwrap_or("-"))
    };
    let parquet = "source: {parquet: a.parquet}\nstages:\n  - tokenise: {tokenizer: tokenizer.json, column: text}\n";
    let late = |stage: &str| error(&format!("{parquet}  - {stage}\n"));
    assert!(late("batch: {batchsize: 3}").contains("line 4: stages[1].batch: unknown key `batchsize`"));
    assert!(late("batch: {batch_size: 0}").contains("line 4: the batch size is 0"), "{}", late("batch: 0"));
    assert!(late("batch: {batch_size: [2]}").contains("needs a whole number"));
    assert!(late("select_indices: {indices: [-1]}").contains("-1 is less than 0"));
    assert!(late("batch: 2\n  - shuffle: 1").contains("line 5: stages[2].shuffle: `shuffle` needs random access"));
    assert!(late("tokenise: {tokenizer: tokeniser.json, column: text}").contains("no file"));
    assert!(late("tokenise: {tokenizer: gpt2, column: text}").contains("the path of a tokenizer.json, "));
    assert!(late("tokenise: {tokenizer: tokeniser.json, column: text}").contains("did you mean `tokenizer.json`?"));
    // A stream is known by its first bytes.
    let packed = "source: {jsonl: {paths: packed.jsonl.gz, lanes: 2}}\nstages: [shuffle: 1]\n";
    assert!(error(packed).contains("needs random access"), "{}", error(packed));
    // In a part of a source, and in the part after one that could not be opened.
    let part = |second: &str| {
        let first = "{source: {parquet: a.parquet}, stages: [{tokenise: {tokenizer: tokenizer.json, column: text}}]}";
        error(&format!("source:\n  zip:\n    parts:\n      - {first}\n      - {second}\n"))
    };
    assert!(part("{crops: {paths: a.bin}}").contains("line 5: source.zip.parts[1].crops: needs `seq_len`"));
    assert!(part("{jsonl: {paths: \"b-*.jsonl\"}}").contains("no file matches the pattern"));
    assert!(part("{range: 5}\nstages: [limit: x]").contains("needs a whole number"));
    // Nothing is wrong with the rest: then it is loaded.
    assert!(late("batch: 2").contains("a.parquet: "), "{}", late("batch: 2"));
}
