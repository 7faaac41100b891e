//! Clients, their devices, and memory that is mapped for them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::checked;
use crate::status::{Error, fail};

/// What goes wrong, from the options of a client; transfers count from 0.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Microseconds between a transfer's call and its copy.
    pub delay_us: i64,
    /// The transfer whose call fails.
    pub call_fails_at: i64,
    /// The transfer whose events end in an error.
    pub event_fails_at: i64,
    /// The transfer whose events never come.
    pub never_at: i64,
    /// The first of those that never come.
    pub never_from: i64,
    /// 0: memory cannot be mapped; 1: it can; 2: only mapped memory is read.
    pub dma: i64,
    /// Sum of what is null although the call says that it worked: 1 the buffer of a transfer, 2 the event of its host memory,
    /// 4 the event of a buffer, 8 that of reading one, 16 the list of devices.
    pub nulls: i64,
}

impl Faults {
    /// `made`, unless it is to be null.
    pub fn give<T>(&self, bit: i64, made: impl FnOnce() -> *mut T) -> *mut T {
        if self.nulls & bit == 0 { made() } else { std::ptr::null_mut() }
    }
}

pub struct Client {
    platform: String,
    devices: Vec<*mut Device>,
    pub shared: Arc<Shared>,
}

thread_local! {
    /// Whether this is a thread of a client.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// What outlives a client in its threads.
pub struct Shared {
    pub faults: Faults,
    pub transfers: AtomicI64,
    pub live_buffers: AtomicI64,
    running: Mutex<usize>,
    stopped: Condvar,
    /// Start and length.
    mapped: Mutex<BTreeMap<usize, usize>>,
}

impl Shared {
    /// Runs `work` on a thread that the client's end waits for.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        *self.running.lock().unwrap() += 1;
        let this = self.clone();
        std::thread::spawn(move || {
            OWN.set(true);
            // A device answers later.
            std::thread::sleep(Duration::from_micros(this.faults.delay_us as u64));
            work();
            *this.running.lock().unwrap() -= 1;
            this.stopped.notify_all();
        });
    }

    pub fn is_mapped(&self, start: usize, len: usize) -> bool {
        let mapped = self.mapped.lock().unwrap();
        mapped.range(..=start).next_back().is_some_and(|(at, size)| start + len <= at + size)
    }
}

pub struct Device {
    id: i32,
}

#[repr(C)]
struct NamedValue {
    size: usize,
    extensions: *const c_void,
    name: *const u8,
    name_size: usize,
    kind: i32,
    value: u64,
    value_size: usize,
}

unsafe fn text<'a>(start: *const u8, len: usize) -> &'a str {
    // SAFETY: the caller says that this is text.
    unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(start, len)) }
}

#[repr(C)]
pub struct CreateArgs {
    size: usize,
    extensions: *const c_void,
    options: *const NamedValue,
    num_options: usize,
    kv: [*const c_void; 4],
    client: *mut Client,
    kv_try: [*const c_void; 2],
}

pub unsafe extern "C" fn create(args: *mut CreateArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_Create_Args", 88);
    let mut platform = "stub".to_owned();
    let mut numbers = BTreeMap::new();
    for at in 0..args.num_options {
        // SAFETY: there are so many.
        let option = unsafe { &*args.options.add(at) };
        // SAFETY: names and texts are as long as they say.
        let name = unsafe { text(option.name, option.name_size) };
        match (name, option.kind) {
            // SAFETY: as above.
            ("platform", 0) => platform = unsafe { text(option.value as *const u8, option.value_size) }.to_owned(),
            (_, 1) if option.value_size == 1 => drop(numbers.insert(name, option.value as i64)),
            _ => return fail(3, &format!("unknown option {name}")),
        }
    }
    let number = |name, default| numbers.get(name).copied().unwrap_or(default);
    let faults = Faults {
        delay_us: number("delay_us", 0),
        call_fails_at: number("call_fails_at", -1),
        event_fails_at: number("event_fails_at", -1),
        never_at: number("never_at", -1),
        never_from: number("never_from", i64::MAX),
        dma: number("dma", 0),
        nulls: number("nulls", 0),
    };
    let devices = (0..number("devices", 1)).map(|id| Box::into_raw(Box::new(Device { id: id as i32 }))).collect();
    let shared = Arc::new(Shared {
        faults,
        transfers: AtomicI64::new(0),
        live_buffers: AtomicI64::new(0),
        running: Mutex::new(0),
        stopped: Condvar::new(),
        mapped: Mutex::default(),
    });
    args.client = Box::into_raw(Box::new(Client { platform, devices, shared }));
    std::ptr::null_mut()
}

#[repr(C)]
pub struct ClientArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
}

/// Waits for the client's threads, as real plugins do, and ends the process if anything of the client's is left.
pub unsafe extern "C" fn destroy(args: *mut ClientArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_Destroy_Args", 24);
    // SAFETY: it came from `create`, and is not used again.
    let client = unsafe { Box::from_raw(args.client) };
    let shared = &client.shared;
    drop(shared.stopped.wait_while(shared.running.lock().unwrap(), |running| *running > 0).unwrap());
    let (buffers, mapped) = (shared.live_buffers.load(Ordering::SeqCst), shared.mapped.lock().unwrap().len());
    if buffers != 0 || mapped != 0 {
        eprintln!("the stub's client ends before {buffers} buffers and {mapped} mapped ranges of memory");
        std::process::abort();
    }
    for device in &client.devices {
        // SAFETY: it came from `create`, and is not used again.
        drop(unsafe { Box::from_raw(*device) });
    }
    std::ptr::null_mut()
}

#[repr(C)]
pub struct PlatformArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
    name: *const u8,
    name_size: usize,
}

pub unsafe extern "C" fn platform_name(args: *mut PlatformArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_PlatformName_Args", 40);
    // SAFETY: a live client.
    let client = unsafe { &*args.client };
    (args.name, args.name_size) = (client.platform.as_ptr(), client.platform.len());
    std::ptr::null_mut()
}

#[repr(C)]
pub struct DevicesArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
    devices: *const *mut Device,
    num_devices: usize,
}

pub unsafe extern "C" fn addressable_devices(args: *mut DevicesArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_AddressableDevices_Args", 40);
    // SAFETY: a live client.
    let client = unsafe { &*args.client };
    let list = client.shared.faults.give(16, || client.devices.as_ptr().cast_mut());
    (args.devices, args.num_devices) = (list, client.devices.len());
    std::ptr::null_mut()
}

#[repr(C)]
pub struct DescriptionArgs {
    size: usize,
    extensions: *const c_void,
    device: *mut Device,
    description: *mut Device,
}

pub unsafe extern "C" fn device_description(args: *mut DescriptionArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Device_GetDescription_Args", 32);
    args.description = args.device;
    std::ptr::null_mut()
}

#[repr(C)]
pub struct IdArgs {
    size: usize,
    extensions: *const c_void,
    description: *mut Device,
    id: i32,
}

pub unsafe extern "C" fn device_id(args: *mut IdArgs) -> *mut Error {
    let args = checked!(args, "PJRT_DeviceDescription_Id_Args", 28);
    // SAFETY: a live device.
    args.id = unsafe { &*args.description }.id;
    std::ptr::null_mut()
}

#[repr(C)]
pub struct KindArgs {
    size: usize,
    extensions: *const c_void,
    description: *mut Device,
    kind: *const u8,
    kind_size: usize,
}

pub unsafe extern "C" fn device_kind(args: *mut KindArgs) -> *mut Error {
    let args = checked!(args, "PJRT_DeviceDescription_Kind_Args", 40);
    (args.kind, args.kind_size) = ("memory".as_ptr(), 6);
    std::ptr::null_mut()
}

#[repr(C)]
pub struct DmaArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
    data: *mut c_void,
    len: usize,
}

pub unsafe extern "C" fn dma_map(args: *mut DmaArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_DmaMap_Args", 40);
    // SAFETY: a live client.
    let shared = &unsafe { &*args.client }.shared;
    if shared.faults.dma == 0 {
        return fail(12, "DmaMap is not implemented");
    }
    shared.mapped.lock().unwrap().insert(args.data as usize, args.len);
    std::ptr::null_mut()
}

pub unsafe extern "C" fn dma_unmap(args: *mut DmaArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_DmaUnmap_Args", 32);
    if OWN.get() {
        eprintln!("the stub is asked to unmap memory in a callback");
        std::process::abort();
    }
    // SAFETY: a live client.
    let removed = unsafe { &*args.client }.shared.mapped.lock().unwrap().remove(&(args.data as usize));
    if removed.is_some() { std::ptr::null_mut() } else { fail(5, "memory that is not mapped") }
}
