//! Several hosts from the shell: one pipeline, a part each, and digests that add up.

use std::path::Path;

use serde_json::Value as Json;

use super::{PIPELINE, demo, fails, gristmill, json, ok, on_one_line, stderr, stdout, write};

/// JSON Lines, tokenised, a mix of three, filtered and packed, in batches that 1, 2, 3 and 4 hosts divide.
const MIXED: &str = "
source:
  mix:
    weights: [3, 2, 1]
    parts:
      - source: {jsonl: {paths: corpus.jsonl}}
        stages: [shuffle: {seed: 1}, slice: {start: 0, step: 3}]
      - source: {jsonl: {paths: corpus.jsonl}}
        stages: [shuffle: {seed: 1}, slice: {start: 1, step: 3}]
      - source: {jsonl: {paths: corpus.jsonl}}
        stages: [shuffle: {seed: 1}, slice: {start: 2, step: 3}]
stages:
  - filter: {column: text, min_length: 400}
  - tokenise: {tokenizer: demo.tokenizer.json, column: text}
  - window_pack: {length: {tokens: 512}, window: 256, over_long: split}
  - batch: {batch_size: 12, remainder: drop}
checkpoint: {folder: state}
";

/// Runs a pipeline of the demo, and keeps what it printed in `file`.
fn run(folder: &Path, args: &[&str], file: &str) -> Json {
    let text = ok(folder, &[&["run", "gristmill-demo/mixed.yaml", "--json"], args].concat());
    write(folder, file, &text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn four_hosts_then_two_then_three_then_one_are_one_that_was_not_interrupted() {
    let (folder, _) = demo();
    let folder = folder.path();
    write(&folder.join("gristmill-demo"), "mixed.yaml", MIXED);
    let mut files: Vec<String> = Vec::new();
    let go_on = |steps| ["--resume", "--steps", steps];
    for (count, more) in [(4, &["--steps", "5"][..]), (2, &go_on("4")), (3, &go_on("6")), (1, &["--resume"])] {
        // The state is that which the first saves, so here, where they run one after the other, it comes last.
        for index in (0..count).rev() {
            let (part, file) = (format!("{index}/{count}"), format!("{count}-{index}.json"));
            let printed = run(folder, &[&["--threads", "2", "--part", &part], more].concat(), &file);
            assert_eq!(printed["part"].as_str(), (count > 1).then_some(part.as_str()));
            assert_eq!(printed["state_file"].is_null(), index > 0, "{printed}");
            files.push(file);
        }
    }
    let whole = run(folder, &["--inline", "--restart", "--checkpoint", "other"], "whole.json");
    let parts: Vec<&str> = files.iter().map(String::as_str).collect();
    let text = ok(folder, &[&["hash", "--same-as", "whole.json"], &parts[..]].concat());
    assert_eq!(text.split_whitespace().nth(2), whole["rows"]["digest"].as_str(), "{text}");
    let (code, told) = fails(folder, &[&["hash", "--same-as", "whole.json"], &parts[1..]].concat());
    assert!(code == 1 && told.contains("not the same: the other is"), "{told}");
    let twice = json(folder, &["hash", "whole.json", "whole.json", "--json"]);
    assert_eq!(twice["count"].as_u64(), whole["rows"]["count"].as_u64().map(|rows| 2 * rows));
}

#[test]
fn hosts_plan_by_keys_that_were_made_before() {
    let (folder, _) = demo();
    let folder = folder.path();
    write(&folder.join("gristmill-demo"), "mixed.yaml", MIXED);
    let pipeline = "gristmill-demo/mixed.yaml";
    let whole = run(folder, &["--inline", "--restart", "--checkpoint", "whole"], "whole.json");
    let (code, told) = fails(folder, &["run", pipeline, "--part", "0/3", "--restart", "--keys", "nowhere"]);
    assert!(code == 2 && on_one_line(&told).contains("there are no keys for jsonl(corpus.jsonl, "), "{told}");
    assert!(told.contains("gristmill index --keys"), "{told}");
    let made = json(folder, &["index", "--keys", pipeline, "--json"]);
    assert_eq!(made["keys"].as_array().map(Vec::len), Some(1), "one corpus, however often it is read: {made}");
    assert!(made["keys"][0]["bytes"].as_u64() < made["keys"][0]["elements"].as_u64().map(|n| 5 * n), "{made}");
    let again = json(folder, &["index", "--keys", pipeline, "--json"]);
    assert_eq!(again["keys"][0]["was_there"], true);
    let mut files = vec!["hash".to_owned(), "--same-as".to_owned(), "whole.json".to_owned()];
    for index in 0..3 {
        let (part, file) = (format!("{index}/3"), format!("{index}.json"));
        let printed = run(folder, &["--threads", "2", "--restart", "--part", &part], &file);
        let host = printed["report"]["part"].as_str().unwrap();
        assert!(host.contains("plans all rows from keys"), "{host}");
        files.push(file);
    }
    ok(folder, &files.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(whole["rows"]["count"].as_u64() > Some(0));
    write(folder, "plain.yaml", "source: {range: {stop: 64}}\nstages: [batch: 8]\n");
    let (code, told) = fails(folder, &["index", "--keys", "plain.yaml"]);
    assert!(
        code == 2
            && on_one_line(&told).contains("keys would not help: each of several hosts evaluates only its own rows"),
        "{told}"
    );
}

/// A damaged line is padding with a mask of 0 in the rows of one host, which says so; all else is what it is.
#[test]
fn an_element_that_fails_becomes_padding_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = |n: i64| if n == 13 { "{damaged\n".to_owned() } else { format!("{{\"n\": {n}}}\n") };
    write(folder, "a.jsonl", &(0..32).map(line).collect::<String>());
    let file = |executor: &str, batch: &str| {
        format!("executor: {executor}\nsource: {{jsonl: {{paths: a.jsonl, columns: [n]}}}}\nstages: [batch: {batch}]\n")
    };
    let masked = "{batch_size: 8, remainder: pad}";
    write(folder, "a.yaml", &file("{inline: true}", masked));
    write(folder, "b.yaml", &file("{threads: 2, on_failed_element: pad, failed_element_limit: 1}", masked));
    let pad: &[&str] = &["--on-failed-element", "pad"];
    let run =
        |part: &str, args: &[&str]| json(folder, &[&["run", "--json", "--restart", "--part", part], args].concat());
    let damaged = "line 14";
    for args in [&[&["a.yaml"], pad].concat()[..], &["b.yaml"]] {
        let hosts = ["0/1", "0/2", "1/2"].map(|part| run(part, args));
        let told = |host: &serde_json::Value| host["report"]["remarks"].to_string();
        let named = |host| told(host).contains("1 element failed and became padding: ") && told(host).contains(damaged);
        assert_eq!([0, 1, 2].map(|host| named(&hosts[host])), [true, false, true], "{hosts:?}");
        for (host, name) in hosts.iter().zip(["whole.json", "0.json", "1.json"]) {
            write(folder, name, &host.to_string());
        }
        ok(folder, &["hash", "0.json", "1.json", "--same-as", "whole.json"]);
    }
    for (args, exit, told) in [
        (&["a.yaml", "--part", "1/2"][..], 1, damaged),
        (
            &["b.yaml", "--part", "1/2", "--failed-element-limit", "0"],
            1,
            "0 failed elements became padding before it, which is the limit",
        ),
        (&["a.yaml", "--failed-element-limit", "3"], 2, "`--failed-element-limit` needs `--on-failed-element pad`"),
        (&["b.yaml", "--on-failed-element", "error"], 1, damaged),
    ] {
        let (code, text) = fails(folder, &[&["run", "--restart"], args].concat());
        let text = on_one_line(&text);
        assert!(code == exit && text.contains(told), "{args:?}: {code} {text}");
    }
    write(folder, "c.yaml", &file("{inline: true}", "8"));
    let (code, text) = fails(folder, &[&["run", "c.yaml", "--part", "0/2"], pad].concat());
    let text = on_one_line(&text);
    assert!(code == 2 && text.contains("does not mark its rows of padding"), "{text}");
    write(folder, "d.yaml", &file("{failed_element_limit: 3}", masked));
    let (code, text) = fails(folder, &["run", "d.yaml"]);
    let text = on_one_line(&text);
    assert!(code == 2 && text.contains("line 1: executor: `failed_element_limit` needs"), "{text}");
}

#[test]
fn the_first_run_records_the_keys_that_the_next_plans_by() {
    let (folder, _) = demo();
    let folder = folder.path();
    write(&folder.join("gristmill-demo"), "mixed.yaml", MIXED);
    let whole = run(folder, &["--inline", "--restart", "--checkpoint", "whole", "--record-keys"], "whole.json");
    let told = whole["report"]["remarks"].to_string();
    assert!(told.contains("are recorded: the next start plans with them"), "{told}");
    let made = json(folder, &["index", "--keys", "gristmill-demo/mixed.yaml", "--json"]);
    assert_eq!(made["keys"][0]["was_there"], true, "{made}");
    let mut files = vec!["hash".to_owned(), "--same-as".to_owned(), "whole.json".to_owned()];
    for index in 0..2 {
        let (part, file) = (format!("{index}/2"), format!("{index}.json"));
        let printed = run(folder, &["--threads", "2", "--restart", "--record-keys", "--part", &part], &file);
        assert!(printed["report"]["part"].as_str().unwrap().contains("plans all rows from keys"), "{printed}");
        files.push(file);
    }
    ok(folder, &files.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn what_is_no_part_and_no_result_is_refused() {
    let (folder, _) = demo();
    let folder = folder.path();
    let (code, told) = fails(folder, &["run", PIPELINE, "--part", "4/4"]);
    assert!(code == 2 && told.contains("there is no part 4/4; parts are 0/N to N-1/N"), "{told}");
    let (code, told) = fails(folder, &["run", PIPELINE, "--part", "0/5", "--inline"]);
    assert!(
        code == 2 && told.contains("batch 0, part 0/5: a global batch of 32 rows does not divide among 5 parts"),
        "{told}"
    );
    let (code, told) = fails(folder, &["hash", PIPELINE]);
    assert!(code == 1 && told.contains("gristmill run --json"), "{told}");
}

#[test]
fn balanced_hosts_add_up_to_one_and_a_shadow_says_what_balance_would_save() {
    let (folder, summary) = demo();
    let folder = folder.path();
    let deal = "balanced: {d_model: 64, micro_steps: 2}";
    for part in ["0/2", "1/2"] {
        let printed = ok(folder, &["run", PIPELINE, "--inline", "--json", "--part", part, "--deal", deal]);
        write(folder, &format!("{}.json", &part[..1]), &printed);
        assert!(printed.contains("a balanced deal saves") && printed.contains("`tokens_segment_ids`"), "{printed}");
    }
    let text = ok(folder, &["hash", "0.json", "1.json"]);
    assert_eq!(text.split_whitespace().nth(2), summary["rows"]["digest"].as_str(), "{text}");
    let run = |args: &[&str]| json(folder, &[&["run", PIPELINE, "--inline", "--json", "--part", "0/2"], args].concat());
    let (even, balanced) = (run(&[]), run(&["--deal", deal]));
    assert_ne!(even["order_hash"], balanced["order_hash"], "other rows");
    let shadow = run(&["--deal", "shadow: {per_token: 1}"]);
    assert_eq!(even["rows"], shadow["rows"]);
    assert!(shadow["report"].to_string().contains("a balanced deal would save"), "{shadow}");
}

#[test]
fn a_deal_of_the_file_is_for_hosts_and_one_of_the_shell_needs_a_part() {
    let (folder, summary) = demo();
    let folder = folder.path();
    let text = std::fs::read_to_string(folder.join(PIPELINE)).unwrap();
    let deal = "executor: {inline: true, deal: {balanced: {column: tokens_positions}}}";
    write(&folder.join("gristmill-demo"), "dealt.yaml", &text.replace("executor: {buffer: 4}", deal));
    let file = "gristmill-demo/dealt.yaml";
    assert_eq!(json(folder, &["run", file, "--json"])["order_hash"], summary["order_hash"], "all rows, in their order");
    let (even, dealt) = (["--deal", "even"], []);
    let run = |args: &[&str]| json(folder, &[&["run", file, "--json", "--part", "1/2"], args].concat());
    assert_ne!(run(&even)["rows"]["digest"], run(&dealt)["rows"]["digest"]);
    let (code, told) = fails(folder, &["run", PIPELINE, "--deal", "shadow: {column: tokens_positions}"]);
    assert!(code == 2 && told.contains("add `--part 0/64`"), "{told}");
    let (code, told) = fails(folder, &["run", PIPELINE, "--part", "0/2", "--deal", "balanced: {d_modl: 64}"]);
    assert!(code == 2 && told.contains("deal.balanced: unknown key `d_modl`; did you mean `d_model`?"), "{told}");
}

#[test]
fn a_pipeline_file_may_say_the_part() {
    let (folder, summary) = demo();
    let folder = folder.path();
    let text = std::fs::read_to_string(folder.join(PIPELINE)).unwrap();
    let file = text.replace("executor: {buffer: 4}", "executor: {inline: true, part: {index: 1, count: 2}}");
    assert_ne!(file, text);
    write(&folder.join("gristmill-demo"), "second.yaml", &file);
    let printed = json(folder, &["run", "gristmill-demo/second.yaml", "--json"]);
    assert_eq!((printed["part"].as_str(), &printed["batches"]), (Some("1/2"), &summary["batches"]));
    let all = json(folder, &["run", "gristmill-demo/second.yaml", "--json", "--part", "0/1"]);
    assert_eq!(all["order_hash"], summary["order_hash"]);
}

/// Hosts that run at the same time say in a folder what they read; one of them reads in another order.
#[test]
fn hosts_that_read_something_else_stop_each_other() {
    let (folder, _) = demo();
    let folder = folder.path();
    let file = |name: &str, stages: &str| {
        let executor = "executor: {inline: true, guard: ../guard}";
        let text = format!("source: {{range: 2400}}\nstages: [{stages}, batch: 12]\n{executor}\n");
        write(&folder.join("gristmill-demo"), name, &text);
    };
    file("same.yaml", "shuffle: 1");
    file("other.yaml", "shuffle: 2");
    let run = |files: [&str; 2]| {
        std::thread::scope(|scope| {
            let host = |index: usize| {
                let file = format!("gristmill-demo/{}", files[index]);
                let part = format!("{index}/2");
                scope.spawn(move || gristmill(folder, &["run", &file, "--restart", "--part", &part]))
            };
            [host(0), host(1)].map(|host| host.join().unwrap())
        })
    };
    for output in run(["same.yaml", "same.yaml"]) {
        assert!(output.status.success(), "{}", stderr(&output));
        let told = on_one_line(&stdout(&output));
        assert!(told.contains("2 hosts agreed up to batch 200"), "{told}");
    }
    for output in run(["same.yaml", "other.yaml"]) {
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        let expected = "hosts disagree: stage 2 is `shuffle(seed=1)` on host 0 and `shuffle(seed=2)` on host 1";
        assert!(told.contains(expected), "{told}");
    }
    // One host alone has nobody to wait for.
    ok(folder, &["run", "gristmill-demo/same.yaml", "--restart"]);
}

/// Compressed files that are read as lanes, in batches that 1, 2, 3 and 4 hosts divide.
#[cfg(feature = "compress")]
const IN_LANES: &str = "
source: {jsonl: {paths: 'packed/*.jsonl.zst', lanes: 4}}
stages:
  - filter: {column: text, min_length: 400}
  - batch: {batch_size: 12, remainder: pad}
executor: {deal: lanes}
checkpoint: {folder: state}
";

#[cfg(feature = "compress")]
#[test]
fn hosts_that_read_their_own_lanes_are_one_that_reads_all() {
    let (folder, _) = demo();
    let folder = &folder.path().join("gristmill-demo");
    write(folder, "plain.yaml", "source: {jsonl: {paths: corpus.jsonl}}\n");
    let packed = ["--to", "jsonl", "--compression", "zstd:1", "--shard-size", "300kB", "--columns", "text"];
    ok(folder, &[&["convert", "plain.yaml", "--out", "packed"], &packed[..]].concat());
    write(folder, "lanes.yaml", IN_LANES);
    let (code, told) = fails(folder, &["run", "lanes.yaml", "--part", "0/2"]);
    assert!(code == 2 && told.contains("has no index") && told.contains("index --keys"), "{told}");
    let made = json(folder, &["index", "--keys", "lanes.yaml", "--json"]);
    assert!(made["keys"][0]["elements"].as_u64() > Some(12), "{made}");
    assert_eq!(json(folder, &["index", "--keys", "lanes.yaml", "--json"])["keys"][0]["was_there"], true);

    let run = |args: &[&str], file: &str| {
        let text = ok(folder, &[&["run", "lanes.yaml", "--json"], args].concat());
        write(folder, file, &text);
    };
    let mut files: Vec<String> = Vec::new();
    let go_on = |steps| ["--resume", "--steps", steps];
    for (count, more) in [(4, &["--steps", "5"][..]), (2, &go_on("4")), (3, &go_on("6")), (1, &["--resume"])] {
        for index in (0..count).rev() {
            let (part, file) = (format!("{index}/{count}"), format!("{count}-{index}.json"));
            let executor = if index == 1 { ["--workers", "2"] } else { ["--threads", "2"] };
            run(&[&executor[..], &["--part", &part], more].concat(), &file);
            files.push(file);
        }
    }
    run(&["--inline", "--restart", "--checkpoint", "other"], "whole.json");
    let parts: Vec<&str> = files.iter().map(String::as_str).collect();
    ok(folder, &[&["hash", "--same-as", "whole.json"], &parts[..]].concat());
}
