use super::*;
use crate::ErrorKind;

#[test]
fn what_is_no_plugin_is_refused_by_name() {
    let error = Plugin::load("/nowhere/plugin.so").unwrap_err();
    assert_eq!((error.kind(), error.file().is_some()), (ErrorKind::Io, true), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text.so");
    std::fs::write(&path, "no library").unwrap();
    let error = Plugin::load(&path).unwrap_err();
    assert!(error.to_string().contains("text.so: cannot be loaded: "), "{error}");
    // The C library of this program.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.split_whitespace().find(|word| word.contains("libc.so")).unwrap();
    let error = Plugin::load(libc).unwrap_err();
    assert!(error.to_string().ends_with("is not a PJRT plugin: it has no function GetPjrtApi"), "{error}");
}

/// The stub fails if it is initialised twice.
#[test]
fn a_plugin_is_initialised_once() {
    let plugins: Vec<_> = (0..2).map(|_| stub::plugin(Stub::Today)).collect();
    assert_eq!(plugins[0].version(), (0, 81));
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("other_name.so");
    std::os::unix::fs::symlink(plugins[0].path(), &link).unwrap();
    assert_eq!(Plugin::load(&link).unwrap().path(), plugins[0].path());
}

#[test]
fn a_client_tells_what_it_has() {
    let client = client(&[("devices", 3)]);
    assert_eq!(client.platform(), "stub");
    assert_eq!(client.devices().iter().map(Device::id).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(client.devices()[2].kind(), "memory");
    let error = client.device(3).unwrap_err();
    assert!(error.to_string().ends_with("no device 3: the client of platform stub has 3"), "{error}");
    let error = stub::plugin(Stub::Today).client_with(&[("colour", ClientOption::Bool(true))]).unwrap_err();
    let said = "PJRT_Client_Create of PJRT API 0.81: unknown option colour (invalid argument, 3)";
    assert!(error.to_string().ends_with(said), "{error}");
    assert_eq!(error.kind(), ErrorKind::Device);
}

#[test]
fn the_oldest_version_works_and_lacks_what_it_lacks() {
    let plugin = stub::plugin(Stub::Oldest);
    assert_eq!(plugin.version(), (0, 57));
    let client = plugin.client().unwrap();
    let options = PutOptions::default().pinned(true);
    let put = DevicePut::new(loader(batches(5, 2)), device_0(&client), options).unwrap();
    assert_eq!(put.map(|batch| number(&batch.unwrap()).unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let error = client.compile("module {}").unwrap_err();
    let said = "PJRT_Client_Compile of PJRT API 0.57: the plugin does not have this function (unimplemented, 12)";
    assert!(error.to_string().ends_with(said), "{error}");
}

/// Sends arrays of all dtypes and ranks and reads them back.
#[test]
fn arrays_come_back_as_they_were() {
    for client in [client(&[]), client(&[("delay_us", 500)])].into_iter().chain(real_clients()) {
        for dtype in DType::ALL {
            for shape in [&[][..], &[3], &[2, 0], &[2, 3, 5], &[1, 2, 1, 3, 2], &[1; 40]] {
                let mut array = Array::builder(dtype, shape).unwrap();
                let bytes = array.bytes_mut();
                let ones = bytes.iter_mut().enumerate();
                ones.for_each(|(i, byte)| *byte = if dtype == DType::Bool { i as u8 % 2 } else { i as u8 % 100 });
                let array = array.freeze();
                let buffer = client.device(0).unwrap().put(&array).unwrap();
                assert_eq!((buffer.dtype(), buffer.shape(), buffer.nbytes()), (dtype, shape, array.bytes().len()));
                assert_eq!(buffer.to_array().unwrap(), array, "{client:?}");
            }
        }
    }
}

/// Such arrays exist because they have 0 bytes. A plugin may accept or refuse them.
#[test]
fn dimensions_that_no_device_has_end_no_process() {
    for client in [client(&[])].into_iter().chain(real_clients()) {
        for huge in [1 << 40, 1 << 62, usize::MAX] {
            let array = Array::new(DType::F64, &[0, huge, huge], crate::Buffer::EMPTY).unwrap();
            match client.device(0).unwrap().put(&array) {
                Ok(buffer) => assert_eq!(buffer.nbytes(), 0),
                Err(error) => assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Device), "{error}"),
            }
        }
    }
}

#[test]
fn programs_are_compiled_and_run() {
    for client in real_clients() {
        let program = "module @add {
            func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>) {
                %sum = stablehlo.add %a, %b : tensor<2x3xf32>
                %zero = stablehlo.constant dense<0.0> : tensor<f32>
                %all = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [0, 1]
                    : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
                return %sum, %all : tensor<2x3xf32>, tensor<f32>
            }
        }";
        let add = client.compile(program).unwrap();
        let device = client.device(0).unwrap();
        let array =
            |values: [f32; 6]| Array::new(DType::F32, &[2, 3], crate::Buffer::from_vec(values.to_vec())).unwrap();
        let a = device.put(&array([0., 1., 2., 3., 4., 5.])).unwrap();
        let results = add.run(&[&a, &a]).unwrap();
        assert_eq!(results[0].to_array().unwrap(), array([0., 2., 4., 6., 8., 10.]));
        assert_eq!((results.len(), results[1].shape(), results[1].dtype()), (2, &[][..], DType::F32));
        assert_eq!(results[1].to_array().unwrap().as_slice::<f32>().unwrap(), [30.]);
        let short = device.put(&filled(0, 1)).unwrap();
        for arguments in [&[&a][..], &[&a, &short], &[&a, &a, &a]] {
            // Some plugins refuse the call, others fail during the run.
            let outcome = add.run(arguments).and_then(|results| results[0].to_array());
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Device, "{client:?}");
        }
        let error = client.compile("module { nonsense }").unwrap_err();
        assert!(error.to_string().contains("PJRT_Client_Compile of PJRT API 0."), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        let other = super::client(&[]);
        let foreign = other.device(0).unwrap().put(&array([0.; 6])).unwrap();
        assert_eq!(add.run(&[&a, &foreign]).unwrap_err().kind(), ErrorKind::Config);
    }
}
