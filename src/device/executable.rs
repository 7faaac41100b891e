//! Compiled programs.
#![expect(unsafe_code, reason = "programs are the plugin's objects")]

use std::ptr::{self, NonNull};

use bytemuck::Zeroable;

use super::abi::*;
use super::buffer::DeviceBuffer;
use super::client::Client;
use crate::error::{Error, ErrorKind, Result};

/// A program compiled for the first device of a client.
pub struct Executable {
    raw: NonNull<RawLoaded>,
    outputs: usize,
    client: Client,
}

// SAFETY: programs are run from any thread, and the plugin synchronises.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

/// XLA's `CompileOptionsProto` in protobuf encoding. Field 3 contains the build options. Their field 1, the device, is
/// -1 (the first of the client). Fields 4 and 5, replicas and partitions, are 1 each.
const ONE_DEVICE: [u8; 17] =
    [0x1a, 15, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x20, 1, 0x28, 1];

impl Client {
    /// Compiles `mlir`, a StableHLO module in MLIR's text format, for a single device.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) with the compiler's message.
    pub fn compile(&self, mlir: &str) -> Result<Executable> {
        let format = "mlir";
        let program = Program {
            struct_size: size_of::<Program>(),
            extensions: ptr::null_mut(),
            code: mlir.as_ptr(),
            code_len: mlir.len(),
            format: format.as_ptr(),
            format_len: format.len(),
        };
        let args = ClientCompile {
            client: self.raw(),
            program: &raw const program,
            options: ONE_DEVICE.as_ptr(),
            options_len: ONE_DEVICE.len(),
            ..Zeroable::zeroed()
        };
        // SAFETY: program and options have the declared lengths and live through the call.
        let compiled = unsafe { self.api().call(args) }.map_err(|failure| self.error(failure))?;
        let raw = NonNull::new(compiled.executable).ok_or_else(|| self.gave_nothing("PJRT_Client_Compile"))?;
        let mut executable = Executable { raw, outputs: 0, client: self.clone() };
        executable.outputs = executable.count_outputs().map_err(|failure| self.error(failure))?;
        Ok(executable)
    }
}

impl Executable {
    fn count_outputs(&self) -> Result<usize, Failure> {
        let api = self.client.api();
        let args = LoadedGetExecutable { loaded: self.raw.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: the program is alive.
        let executable = unsafe { api.call(args) }?.executable;
        // SAFETY: the call above returned the executable.
        let outputs = unsafe { api.call(ExecutableNumOutputs { executable, ..Zeroable::zeroed() }) };
        // SAFETY: the caller owns the executable, which is not used again. A failure changes nothing.
        let _ = unsafe { api.call(ExecutableDestroy { executable, ..Zeroable::zeroed() }) };
        Ok(outputs?.outputs)
    }

    /// Starts the program on `arguments`, which may still be in transfer. Returns the result buffers before the program
    /// ends.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an argument of another client;
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) with the plugin's message, such as a wrong number or shape of
    /// arguments. The result buffers report a failure during the run.
    pub fn run(&self, arguments: &[&DeviceBuffer]) -> Result<Vec<DeviceBuffer>> {
        if let Some(at) = arguments.iter().position(|argument| !argument.client().is(&self.client)) {
            return Err(Error::config(format!(
                "argument {at} is on a device of a different client than the program's"
            )));
        }
        let arguments: Vec<*mut RawBuffer> = arguments.iter().map(|argument| argument.raw()).collect();
        let mut outputs = Vec::<*mut RawBuffer>::new();
        let count = self.outputs;
        let refused =
            |_| Error::new(ErrorKind::Device, format!("no memory for the {count} results that the plugin reports"));
        outputs.try_reserve_exact(count).map_err(refused)?;
        outputs.resize(count, ptr::null_mut());
        let (argument_list, output_list) = (arguments.as_ptr(), outputs.as_mut_ptr());
        let mut options = ExecuteOptions { struct_size: size_of::<ExecuteOptions>(), ..Zeroable::zeroed() };
        let args = LoadedExecute {
            executable: self.raw.as_ptr(),
            options: &raw mut options,
            arguments: &raw const argument_list,
            devices_len: 1,
            arguments_len: arguments.len(),
            outputs: &raw const output_list,
            ..Zeroable::zeroed()
        };
        // SAFETY: there is one list of arguments and one list of results. Both have the declared lengths, and there is
        // a place for each result of the program. All lists live through the call, and the plugin keeps any memory that
        // it reads later.
        unsafe { self.client.api().call(args) }.map_err(|failure| self.client.error(failure))?;
        let adopt = |raw| {
            let raw = NonNull::new(raw).ok_or_else(|| self.client.gave_nothing("PJRT_LoadedExecutable_Execute"))?;
            // SAFETY: the call returned this buffer, and its caller owns the buffer.
            unsafe { DeviceBuffer::adopt(raw, &self.client) }
        };
        // All buffers are adopted before any error is returned, so that all are freed.
        let adopted: Vec<Result<DeviceBuffer>> = outputs.into_iter().map(adopt).collect();
        adopted.into_iter().collect()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let args = LoadedDestroy { executable: self.raw.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: the program is not used again. A failure changes nothing.
        let _ = unsafe { self.client.api().call(args) };
    }
}

debug_as!(Executable, |self, f| write!(f, "Executable({} results on {})", self.outputs, self.client.platform()));
