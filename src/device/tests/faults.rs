//! A failure on a device is reported once, at its batch, and ends the stream.

use super::*;
use crate::{ErrorKind, Result};

/// Returns the batches before the first error, and the error. Checks that nothing comes after the error.
fn until_error(put: &mut impl Iterator<Item = Result<DeviceBatch>>) -> (Vec<DeviceBatch>, crate::Error) {
    let mut good = Vec::new();
    loop {
        match put.next().expect("an error before the end") {
            Ok(batch) => good.push(batch),
            Err(error) => {
                assert!(put.next().is_none());
                return (good, error);
            }
        }
    }
}

#[test]
fn a_refused_transfer_is_an_error_at_its_batch() {
    for depth in [1, 2, 5] {
        let client = client(&[("call_fails_at", 3)]);
        let options = PutOptions::default().depth(depth);
        let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), options).unwrap();
        let (good, error) = until_error(&mut put);
        assert_eq!(good.iter().map(number).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
        let (place, said) =
            ("stage device_put: element 3: ", "told to refuse this transfer (resource exhausted, 8), in array x");
        assert!(error.to_string().starts_with(place) && error.to_string().ends_with(said), "{error}");
        assert_eq!((error.kind(), put.delivered()), (ErrorKind::Device, 3));
        assert_eq!(put.state().unwrap().delivered, 3);
    }
}

#[test]
fn a_lost_transfer_is_an_error_at_its_batch() {
    let client = client(&[("event_fails_at", 3)]);
    let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), PutOptions::default()).unwrap();
    let (good, error) = until_error(&mut put);
    assert_eq!((good.len(), error.element_index()), (3, Some(3)), "{error}");
    assert!(error.to_string().ends_with("told to lose this transfer (internal, 13)"), "{error}");
}

/// The transfer fails after its batch was handed out. The buffers and the stream then report the error, the stream with
/// the index of the batch.
#[test]
fn a_transfer_that_is_lost_late_is_told_of_twice() {
    let client = client(&[("event_fails_at", 3), ("delay_us", 300_000)]);
    let options = PutOptions::default().depth(1).slots(100);
    let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), options).unwrap();
    let good: Vec<_> = put.by_ref().take(4).map(Result::unwrap).collect();
    let error = good[3].wait(LONG).unwrap_err();
    assert_eq!((error.kind(), error.element_index()), (ErrorKind::Device, Some(3)), "{error}");
    assert!(good[3].array("x").unwrap().buffer().to_array().is_err());
    let (more, error) = until_error(&mut put);
    assert_eq!((more.len(), error.element_index()), (0, Some(3)), "{error}");
}

#[test]
fn a_transfer_that_never_ends_is_an_error_of_its_batch() {
    let timeout = Duration::from_millis(30);
    // Either one transfer never ends and keeps its slot, or all transfers never end and no slot becomes free.
    for fault in ["never_at", "never_from"] {
        let client = client(&[(fault, 3)]);
        let options = PutOptions::default().timeout(timeout).staging(Staging::Always);
        let mut put = DevicePut::new(loader(batches(1_000_000, 2)), device_0(&client), options).unwrap();
        let (good, error) = until_error(&mut put);
        assert!(good.len() >= 3);
        assert_eq!((error.kind(), error.element_index()), (ErrorKind::Device, Some(3)), "{error}");
        assert!(error.to_string().ends_with("its transfer is not over after 30ms"), "{error}");
    }
}

#[test]
fn an_error_of_the_pipeline_comes_in_its_place() {
    let ds = Range::new(0, 9).try_map(|i| match i {
        4 => Err(crate::Error::data("bad record")),
        _ => Ok(Element::new().with("x", filled(i, 2))),
    });
    let put = DevicePut::new(loader(ds.to_iter().boxed()), device_0(&client(&[])), PutOptions::default().depth(3));
    let (good, error) = until_error(&mut put.unwrap());
    assert_eq!((good.len(), error.to_string().as_str()), (4, "stage 1 map: element 4: bad record"));
}

#[test]
fn what_no_device_takes_is_named() {
    let client = client(&[("devices", 2)]);
    let error_of = |batch: Batch, placement: Placement| {
        let ds = Range::new(0, 1).map(move |_| batch.clone()).to_iter().boxed();
        until_error(&mut DevicePut::new(loader(ds), placement, PutOptions::default()).unwrap()).1.to_string()
    };
    let text = Element::new().with("meta", Element::new().with("name", "a"));
    let said = "stage device_put: element 0: meta/name is text, and only arrays go to a device";
    assert_eq!(error_of(text, device_0(&client)), said);
    let rows = || Placement::rows(&client.devices()).unwrap();
    let said = "stage device_put: element 0: x is int32[3, 64], whose rows cannot be split evenly over 2 devices";
    assert_eq!(error_of(Element::new().with("x", filled(0, 3)), rows()), said);
    assert!(error_of(Element::new().with("x", Array::scalar(1i32)), rows()).contains("x is int32[], whose rows"));
    assert!(Placement::rows(&[]).is_err());
    let other = super::client(&[]).device(0).unwrap();
    assert!(Placement::rows(&[client.device(0).unwrap(), other]).is_err());
}

#[test]
fn buffers_may_view_memory_on_a_cpu_only() {
    let options = PutOptions::default().zero_copy(true);
    let error = DevicePut::new(loader(batches(1, 1)), device_0(&client(&[])), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("zero_copy on platform stub"), "{error}");
}

#[test]
fn what_a_plugin_says_that_it_made_and_did_not_is_an_error() {
    let call = |nulls: i64| {
        let client = client(&[("nulls", nulls), ("devices", if nulls == 16 { 1 << 20 } else { 1 })]);
        let buffer = client.device(0)?.put(&filled(1, 1))?;
        buffer.ready()?.wait()?;
        buffer.to_array()
    };
    assert!(call(0).is_ok());
    for (nulls, name) in [
        (1, "Client_BufferFromHostBuffer"),
        (2, "Client_BufferFromHostBuffer"),
        (3, "Client_BufferFromHostBuffer"),
        (4, "Buffer_ReadyEvent"),
        (8, "Buffer_ToHostBuffer"),
    ] {
        let error = call(nulls).unwrap_err();
        assert!(error.to_string().ends_with(&format!("PJRT_{name} reported success but returned nothing")), "{error}");
    }
    assert!(call(16).unwrap_err().to_string().ends_with("no device 0: the client of platform stub has 0"));
    let mut put =
        DevicePut::new(loader(batches(9, 2)), device_0(&client(&[("nulls", 2)])), PutOptions::default()).unwrap();
    assert_eq!(until_error(&mut put).1.kind(), ErrorKind::Device);
}

/// The plugin determines dimensions, types and number of the results.
#[test]
fn results_that_cannot_be_are_errors_and_freed() {
    let client = client(&[]);
    let run = |program: &str| client.compile(program)?.run(&[]);
    let results = run("11 2 3\n4\n5 0 576460752303423488").unwrap();
    let said: Vec<_> =
        results.iter().map(|result| (result.dtype(), result.shape().to_vec(), result.nbytes())).collect();
    let one = |dtype, shape: &[usize], nbytes| (dtype, shape.to_vec(), nbytes);
    assert_eq!(said, [one(DType::F32, &[2, 3], 24), one(DType::I32, &[], 4), one(DType::I64, &[0, 1 << 59], 0)]);
    assert_eq!(results[0].to_array().unwrap().as_slice::<f32>().unwrap(), [0.; 6]);
    let far = i64::MAX;
    for (program, says) in [
        ("11 -1".to_owned(), "a device buffer of float32[-1] cannot be"),
        (format!("11 2 3\n4 {far} {far}"), "cannot be"),
        (format!("6 {far} 2"), "cannot be"),
        (format!("5 0 {far} {far}"), "cannot be"),
        (format!("12 {}", 1i64 << 60), "cannot be"),
        ("0 1".to_owned(), "a device buffer of PJRT's type 0, which no dtype here is"),
        ("-7 1".to_owned(), "PJRT's type -7"),
        ("11 2\nnull".to_owned(), "PJRT_LoadedExecutable_Execute reported success but returned nothing"),
        ("outputs 3\n11 2".to_owned(), "returned nothing"),
        (format!("outputs {}\n", usize::MAX), "no memory for the 18446744073709551615 results that the plugin reports"),
        ("nonsense".to_owned(), "no program of this plugin (invalid argument, 3)"),
    ] {
        let error = run(&program).unwrap_err().to_string();
        assert!(error.contains(says), "{program}: {error}");
    }
}
