use std::path::{Path, PathBuf};

use super::cached::Numbers;
use super::*;
use crate::MapDatasetExt;
use crate::element::Buffer;
use crate::source::{MegatronWriter, npy};

/// Writes `count` documents. Document `d` has `d * factor % modulus` ids from `base + 100 * d` on.
fn write(folder: &Path, name: &str, [count, factor, modulus, base]: [u16; 4]) -> PathBuf {
    let mut writer = MegatronWriter::options().write_to(Vec::new(), Vec::new()).unwrap();
    for document in 0..count {
        let ids: Vec<u16> = (0..document * factor % modulus).map(|id| base + document * 100 + id).collect();
        writer.write(&Element::new().with("tokens", Array::from_vec(ids))).unwrap();
    }
    let (data, index) = writer.finish().unwrap();
    std::fs::write(folder.join(name).with_extension("bin"), data).unwrap();
    std::fs::write(folder.join(name).with_extension("idx"), index).unwrap();
    folder.join(name)
}

fn three(folder: &Path) -> Vec<PathBuf> {
    let all = [("a", [50, 37, 23, 0]), ("b", [30, 7, 11, 7]), ("c", [80, 5, 17, 3])];
    all.map(|(name, numbers)| write(folder, name, numbers)).into()
}

/// Returns the number of samples, the first id of the first eight, and all ids folded by `31 * hash + id`.
fn pinned(samples: &MegatronSamples) -> (u64, Vec<i32>, u64) {
    let all: Vec<Vec<i32>> = samples.collect().unwrap().iter().map(ids).collect();
    let hash = all.iter().flatten().fold(0u64, |hash, &id| hash.wrapping_mul(31).wrapping_add(id as u64));
    (samples.len(), all.iter().take(8).map(|sample| sample[0]).collect(), hash)
}

fn ids(sample: &Element) -> Vec<i32> {
    sample.array("tokens").unwrap().as_slice().unwrap().to_vec()
}

// megatron-core 0.16.1: `BlendedMegatronDatasetBuilder(GPTDataset, …).build()`, and the text of each sample.
#[test]
fn samples_are_those_of_megatron() {
    let folder = tempfile::tempdir().unwrap();
    let all = three(folder.path());
    let options = || MegatronSamples::options(8);
    let twelve = [1.0, 2.0, 3.5, 0.7, 5.0, 6.0, 7.0, 8.0, 9.0, 1.1, 11.0, 12.0];
    let four_times = [&*all, &*all, &*all, &*all].concat();
    let valid = MegatronSamples::options(5).split([969.0, 500.0, 1.0], MegatronSplit::Valid);
    let rows = [
        ("one epoch", options(), &all[..1], 67, [808, 4112, 3613, 1205, 2411, 4005, 3501, 2000], 14242003620023764220),
        (
            "the last epoch is separate",
            options().samples(160),
            &all[..1],
            203,
            [818, 4404, 4913, 3002, 810, 3201, 1113, 4302],
            1546522233321915729,
        ),
        (
            "epochs together",
            options().seed(77).samples(200),
            &all[..1],
            203,
            [1411, 1807, 2604, 1902, 2411, 3113, 1312, 2615],
            4133195513321965186,
        ),
        (
            "valid",
            valid.samples(30),
            &all[..1],
            37,
            [4114, 3611, 4207, 3702, 4906, 4006, 4406, 4104],
            404874953094859461,
        ),
        (
            "no next id",
            options().samples(160).with_next(false),
            &all[..1],
            204,
            [4106, 810, 3002, 1904, 3609, 3209, 1113, 2600],
            11194374337336234840,
        ),
        (
            "one with a weight",
            options().samples(160).weights([0.3]),
            &all[..1],
            160,
            [818, 4404, 4913, 3002, 810, 3201, 1113, 4302],
            17597687353731359106,
        ),
        (
            "weights",
            options().samples(100).weights([0.3, 0.5, 0.2]),
            &all,
            100,
            [1714, 808, 7818, 508, 4112, 1414, 3204, 408],
            8055936670377857412,
        ),
        (
            "by length",
            options().samples(60),
            &all,
            60,
            [7818, 808, 2313, 3204, 4112, 1305, 3613, 2008],
            9375173816549867225,
        ),
        ("all", options(), &all, 164, [7818, 808, 2313, 3204, 4112, 1305, 3613, 2008], 10408630659169887430),
        (
            "twelve weights",
            options().seed(5).samples(300).weights(twelve),
            &four_times,
            306,
            [5012, 2310, 5012, 1407, 2206, 5012, 208, 5012],
            6415839658783017533,
        ),
    ];
    for (name, options, prefixes, len, firsts, hash) in rows {
        assert_eq!(pinned(&open(options, prefixes)), (len, firsts.to_vec(), hash), "{name}");
    }
}

fn open(options: MegatronSamplesOptions, prefixes: &[PathBuf]) -> MegatronSamples {
    options.open(prefixes).unwrap()
}

#[test]
fn any_sample_is_reached_directly_and_a_batch_is_the_stack() {
    use crate::element::Stack;
    let folder = tempfile::tempdir().unwrap();
    let all = three(folder.path());
    let options = MegatronSamples::options(8).samples(40_000).weights([0.3, 0.5, 0.2]);
    let (here, there) = (open(options.clone(), &all), open(options, &all));
    let indices = [here.len() - 1, 0, 20_000, 16_384, 16_383, here.len() + 3];
    let mut cx = Cx::default();
    let apart: Vec<_> = indices.iter().map(|&index| here.get(index, &mut cx).unwrap().unwrap()).collect();
    let batch = there.bulk().unwrap().get_stacked(&indices, &mut cx).unwrap().batch;
    assert_eq!(batch, Element::stack(apart.clone()).unwrap());
    assert_eq!(apart[5], there.get(3, &mut cx).unwrap().unwrap());
}

#[test]
fn impossible_samples_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let all = three(folder.path());
    let refused = |options: MegatronSamplesOptions, prefixes: &[PathBuf]| {
        options.open(prefixes).map(|_| ()).unwrap_err().message().to_owned()
    };
    let options = || MegatronSamples::options(8);
    assert_eq!(refused(MegatronSamples::options(0), &all), "seq_len is 0");
    assert_eq!(refused(options().weights([1.0, 1.0, 1.0]), &all), "weights need a number of samples");
    assert_eq!(refused(options().samples(9).weights([1.0]), &all), "1 weights for 3 data sets");
    assert_eq!(refused(options().samples(9).weights([0.0]), &all[..1]), "weight 0 is not a finite number above 0");
    let none = options().split([1.0, 0.0, 0.0], MegatronSplit::Test);
    assert_eq!(refused(none, &all), "the sequences have no ids");
    let too_many = "the data set has more than 2^32 samples, or sequences in all epochs";
    assert_eq!(refused(options().samples(1 << 40), &all[..1]), too_many);
    assert_eq!(refused(options().samples(u64::MAX), &all[..1]), too_many);
}

#[test]
fn damaged_files_are_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = write(folder.path(), "a", [50, 37, 23, 0]);
    let index = prefix.with_extension("idx");
    let whole = std::fs::read(&index).unwrap();
    let damaged = |length: i32| {
        let mut bytes = whole.clone();
        bytes[34..38].copy_from_slice(&length.to_le_bytes());
        std::fs::write(&index, bytes).unwrap();
        MegatronSamples::options(8).open(&prefix).unwrap_err().message().to_owned()
    };
    assert_eq!(damaged(-1), "sequence 0 has the length -1");
    assert_eq!(damaged(i32::MAX), "the sequences have 2147484191 ids, but the .bin file has 544");
}

/// Writes the orders of `samples` as Megatron-Core does, each under the name of its data set.
fn write_cache(folder: &Path, samples: &MegatronSamples, prefixes: &[PathBuf]) {
    for (at, (data_set, prefix)) in samples.0.data_sets.iter().zip(prefixes).enumerate() {
        let (plan, order) = (&data_set.plan, Order::new(&data_set.plan, data_set.index.lengths().unwrap()));
        let start = |list: &str| folder.join(format!("{at}abc-GPTDataset-train-{list}"));
        let description = serde_json::json!({
            "class": "GPTDataset", "dataset_path": prefix.file_name().unwrap().to_str(), "num_samples": plan.wanted,
            "index_split": "Train", "random_seed": plan.seed, "sequence_length": plan.seq_len, "split": "1, 0,0",
        });
        std::fs::write(start("description.txt"), description.to_string()).unwrap();
        let numbers = |numbers: &Numbers| -> Vec<i32> {
            (0..).map_while(|place| numbers.get(place)).map(u32::cast_signed).collect()
        };
        let write = |list: &str, array: Array| std::fs::write(start(list), npy::encode(&array).unwrap()).unwrap();
        write("document_index.npy", Array::from_vec(numbers(&order.sequences)));
        let mut starts: Vec<i64> = numbers(&order.starts).into_iter().map(i64::from).collect();
        starts.extend([0, 0]);
        write("sample_index.npy", Array::from_vec(starts));
        write("shuffle_index.npy", Array::from_vec(numbers(&order.samples)));
    }
}

#[test]
fn an_order_of_megatron_is_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let all = three(folder.path());
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let options = || MegatronSamples::options(8).samples(100).weights([0.3, 0.5, 0.2]);
    let computed = open(options(), &all);
    write_cache(&cache, &computed, &all);
    let is_mapped = |samples: &MegatronSamples| samples.0.data_sets.iter().all(|data_set| data_set.memory() == 0);
    let mapped = open(options().cache(&cache), &all);
    assert!(is_mapped(&mapped) && mapped.0.memory < computed.0.memory);
    assert_eq!(pinned(&mapped), pinned(&computed));
    assert_eq!(mapped.params(), computed.params());
    for other in [options().seed(7), options().samples(105), options().split([1.0, 1.0, 0.0], MegatronSplit::Train)] {
        let [mapped, computed] = [other.clone().cache(&cache), other].map(|options| open(options, &all));
        assert!(!is_mapped(&mapped));
        assert_eq!(pinned(&mapped), pinned(&computed));
    }
    // Lists of another data set, of an equal length.
    let path = cache.join("0abc-GPTDataset-train-document_index.npy");
    let list = npy::decode(Buffer::copy_from(&std::fs::read(&path).unwrap())).unwrap();
    let len = list.shape()[0];
    std::fs::write(&path, npy::encode(&Array::from_vec(vec![70; len])).unwrap()).unwrap();
    let text = open(options().cache(&cache), &all).collect().unwrap_err().to_string();
    assert!(text.contains("of sequence 70, which does not exist"), "{text}");
    std::fs::write(&path, "damaged").unwrap();
    let error = options().cache(&cache).open(&all).unwrap_err();
    assert!(error.to_string().contains("document_index.npy"), "{error}");
}

#[test]
fn orders_beyond_the_free_memory_are_refused() {
    check_memory(1 << 30, Some(1 << 30)).unwrap();
    check_memory(1 << 30, None).unwrap();
    let text = check_memory(48 << 30, Some(8 << 30)).unwrap_err().message().to_owned();
    assert_eq!(text, "the order of the samples needs 48 GiB, and 8 GiB are free");
}
