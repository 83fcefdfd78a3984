// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A loaded library and the memory of one graph: all unsafe code of native execution, except for
//! input and output.

use crate::{Error, Image};
use crate::{abi, memory};
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;

/// Limit of probe output that is kept until the host collects it.
const PROBE_BYTES_LIMIT: u64 = 1 << 20;

/// A library, and one graph of it in memory.
pub(crate) struct Instance {
    memory: NonNull<u8>,
    layout: Layout,
    image: NonNull<abi::Image>,
    runtime: Box<abi::Runtime>,
    /// Whether all pages have been populated, as they are from the first run on.
    is_touched: bool,
    /// Unmapped last.
    _library: libloading::Library,
}

// SAFETY: all memory is owned, and the code keeps no thread-local state.
unsafe impl Send for Instance {}

impl Instance {
    pub fn load(image: &Image, seed: u64) -> Result<Self, Error> {
        let failed = |reason: String| Error::Load { library: image.library.clone(), reason };
        // SAFETY: the library was made by `build`, and has no initialisers.
        let library = unsafe { libloading::Library::new(&image.library) };
        let library = library.map_err(|error| failed(error.to_string()))?;
        // SAFETY: the symbol is a constant structure; its version is checked before any other use.
        let symbol = unsafe { library.get::<*mut abi::Image>(b"freeport_image\0") };
        let symbol = symbol.map_err(|error| failed(error.to_string()))?;
        let found = NonNull::new(*symbol).ok_or_else(|| failed("it exports nothing".into()))?;
        // SAFETY: the symbol stays mapped as long as the library, which is kept loaded.
        let description = unsafe { found.as_ref() };
        if description.abi != abi::VERSION {
            let version = description.abi;
            return Err(failed(format!(
                "its interface is version {version}, not {}",
                abi::VERSION
            )));
        }
        if description.instance_count != image.manifest.instances.len() as u64
            || description.channel_count != image.manifest.channels.len() as u64
            || description.endpoint_count != image.manifest.endpoints.len() as u64
        {
            return Err(failed("its manifest belongs to another program".into()));
        }
        let (size, align) = (description.graph_bytes as usize, description.graph_align as usize);
        let layout = memory::layout(size, align).ok_or_else(|| failed("it is too large".into()))?;
        let memory = memory::zeroed(layout);
        let runtime = Box::new(abi::Runtime {
            grow,
            probes: empty(),
            probe_bytes_limit: PROBE_BYTES_LIMIT,
            lost_probes: 0,
            recorded_bytes: 0,
            recorded_bytes_limit: u64::MAX,
            clock: 0,
            clock_reads_left: 0,
            breakpoints_enabled: 0,
            has_stopped: 0,
            pause: ptr::null(),
            free_buffers: ptr::null_mut(),
            buffers_in_use: 0,
            allocate,
            release,
            calls: empty(),
            buffers: vec![],
        });
        let mut this =
            Self { memory, layout, image: found, runtime, is_touched: false, _library: library };
        let runtime: *mut abi::Runtime = &raw mut *this.runtime;
        // SAFETY: the memory is zeroed, with the size and alignment that the image requires; the
        // runtime has a stable address for the lifetime of the graph.
        unsafe { (this.image().start)(this.memory(), runtime, seed) };
        Ok(this)
    }

    /// Returns the number of buffers allocated for packets.
    pub fn buffers_in_use(&self) -> u64 {
        self.runtime.buffers_in_use
    }

    /// Returns whether breakpoints hold instances.
    pub fn breakpoints_enabled(&self) -> bool {
        self.runtime.breakpoints_enabled != 0
    }

    /// Allocates a buffer for a packet; it is freed with the graph unless the code releases it
    /// earlier.
    pub fn new_buffer(&mut self, bytes: usize) -> *mut u8 {
        self.runtime.buffers_in_use += 1;
        // SAFETY: the runtime belongs to this graph.
        unsafe { allocate(&raw mut *self.runtime, bytes as u64) }
    }

    pub fn runtime(&mut self) -> &mut abi::Runtime {
        &mut self.runtime
    }

    /// Runs until nothing moves, or until soon after `is_wanted` is set.
    pub fn run(&mut self, is_wanted: &AtomicBool, io: &mut [abi::EndpointIo]) -> u32 {
        assert_eq!(io.len() as u64, self.image().endpoint_count, "one for each endpoint");
        if !self.is_touched {
            self.is_touched = true;
            memory::touch(self.memory, self.layout);
        }
        self.runtime.pause = is_wanted.as_ptr().cast();
        // SAFETY: the graph is started, and the targets of `io` and `pause` are borrowed for the
        // call; the code loads the latter atomically.
        let status = unsafe { (self.image().run)(self.memory(), io.as_mut_ptr()) };
        self.runtime.pause = ptr::null();
        status
    }

    /// Calls method `method`; `arguments` and `result` have the lengths of its signature.
    pub fn call(
        &mut self,
        instance: usize,
        method: u32,
        arguments: &[u8],
        result: &mut [u8],
    ) -> u32 {
        let (arguments, result) = (arguments.as_ptr(), result.as_mut_ptr());
        // SAFETY: the callers take the lengths from the manifest.
        unsafe { (self.image().call)(self.memory(), instance as u32, method, arguments, result) }
    }

    /// Performs an action on a table of the manifest; `key` and `value` have the table's lengths.
    pub fn act_on_table(
        &self,
        request: abi::TableRequest,
        key: &mut [u8],
        value: &mut [u8],
        cursor: &mut u64,
    ) -> bool {
        let abi::TableRequest { instance, table, action } = request;
        let (key, value) = (key.as_mut_ptr(), value.as_mut_ptr());
        let Some(act) = self.image().act_on_table else { return false };
        // SAFETY: the callers take the lengths from the manifest; callers with a shared borrow of
        // the graph request only actions that change nothing.
        unsafe { act(self.memory(), instance, table, action, key, value, cursor) != 0 }
    }

    pub fn instance(&self, at: usize) -> &abi::Instance {
        // SAFETY: the layout contains the offset of the instance, and no code runs while `self` is
        // borrowed.
        unsafe { &*self.at(self.instance_layout(at).offset).cast::<abi::Instance>() }
    }

    pub fn instance_mut(&mut self, at: usize) -> &mut abi::Instance {
        // SAFETY: as above, borrowed exclusively.
        unsafe { &mut *self.at(self.instance_layout(at).offset).cast::<abi::Instance>() }
    }

    /// Returns how often instance `at` raised the trap of each of `count` codes.
    pub fn traps(&self, at: usize, count: usize) -> &[u64] {
        // SAFETY: the array has an element for each code of the manifest.
        unsafe { std::slice::from_raw_parts(self.instance(at).traps, count) }
    }

    pub fn channel(&self, at: usize) -> &abi::Channel {
        // SAFETY: as for instances; `at` is below the image's count, as the manifest's is.
        unsafe { &*self.at(self.channel_layout(at).offset).cast::<abi::Channel>() }
    }

    pub fn channel_mut(&mut self, at: usize) -> &mut abi::Channel {
        // SAFETY: as above, borrowed exclusively.
        unsafe { &mut *self.at(self.channel_layout(at).offset).cast::<abi::Channel>() }
    }

    /// Returns the counters of an endpoint, if frames leave there.
    pub fn output(&self, endpoint: usize) -> Option<&abi::OutputCounters> {
        let offset = self.endpoint_layout(endpoint).counters;
        // SAFETY: the offset is that of such a structure in the graph.
        (offset != u64::MAX).then(|| unsafe { &*self.at(offset).cast::<abi::OutputCounters>() })
    }

    /// Returns the bytes of element `index` of a variable with elements of `bytes` bytes; the
    /// caller has checked object and index against the manifest.
    pub fn variable(&self, instance: usize, object: usize, index: u64, bytes: usize) -> &[u8] {
        // SAFETY: the location is within the graph, as the caller has checked.
        unsafe { std::slice::from_raw_parts(self.place(instance, object, index), bytes) }
    }

    /// Returns the bytes of an element, mutably; see [`variable`](Self::variable).
    pub fn variable_mut(
        &mut self,
        instance: usize,
        object: usize,
        index: u64,
        bytes: usize,
    ) -> &mut [u8] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.place(instance, object, index), bytes) }
    }

    fn place(&self, instance: usize, object: usize, index: u64) -> *mut u8 {
        let layout = self.instance_layout(instance);
        // SAFETY: there is a layout for every object of the manifest.
        let object = unsafe { layout.objects.add(object) };
        // SAFETY: as above; layouts are constants of the library.
        let object = unsafe { &*object };
        self.at(layout.state_offset + object.offset + index * object.stride)
    }

    pub(crate) fn instance_layout(&self, at: usize) -> &abi::InstanceLayout {
        assert!((at as u64) < self.image().instance_count, "an instance of the manifest");
        // SAFETY: the array has `instance_count` elements, and `at` is less.
        let layout = unsafe { self.image().instances.add(at) };
        // SAFETY: as above; layouts are constants of the library, which stays loaded.
        unsafe { &*layout }
    }

    pub(crate) fn channel_layout(&self, at: usize) -> &abi::ChannelLayout {
        assert!((at as u64) < self.image().channel_count, "a channel of the manifest");
        // SAFETY: the array has `channel_count` elements, and `at` is less.
        let layout = unsafe { self.image().channels.add(at) };
        // SAFETY: as above; layouts are constants of the library, which stays loaded.
        unsafe { &*layout }
    }

    pub(crate) fn endpoint_layout(&self, at: usize) -> &abi::EndpointLayout {
        assert!((at as u64) < self.image().endpoint_count, "an endpoint of the manifest");
        // SAFETY: the array has `endpoint_count` elements, and `at` is less.
        let layout = unsafe { self.image().endpoints.add(at) };
        // SAFETY: as above; layouts are constants of the library, which stays loaded.
        unsafe { &*layout }
    }

    pub(crate) fn at(&self, offset: u64) -> *mut u8 {
        // SAFETY: offsets of the image are within its graph.
        unsafe { self.memory.as_ptr().add(offset as usize) }
    }

    fn memory(&self) -> *mut c_void {
        self.memory.as_ptr().cast()
    }

    fn image(&self) -> &abi::Image {
        // SAFETY: the image stays mapped as long as the library.
        unsafe { self.image.as_ref() }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for at in 0..self.image().instance_count as usize {
            let instance = self.instance_mut(at);
            for stream in [&mut instance.ready, &mut instance.now, &mut instance.random_values] {
                drop(take(stream));
            }
        }
        for at in 0..self.image().channel_count as usize {
            let channel = self.channel_mut(at);
            drop((take(&mut channel.history), take(&mut channel.keep)));
        }
        drop((take(&mut self.runtime.probes), take(&mut self.runtime.calls)));
        // SAFETY: the memory was allocated with this layout, and is not used afterwards.
        unsafe { memory::free(self.memory, self.layout) };
    }
}

fn empty() -> abi::Stream {
    abi::Stream { data: ptr::null_mut(), length: 0, capacity: 0 }
}

/// Takes the bytes of a stream, leaving it empty.
pub(crate) fn take(stream: &mut abi::Stream) -> Vec<u8> {
    let abi::Stream { data, length, capacity } = std::mem::replace(stream, empty());
    match NonNull::new(data) {
        // SAFETY: only `grow` sets a stream's memory, to that of a vector.
        Some(data) => unsafe {
            Vec::from_raw_parts(data.as_ptr(), length as usize, capacity as usize)
        },
        None => vec![],
    }
}

/// Makes room for `more` bytes in a stream.
unsafe extern "C" fn grow(stream: *mut abi::Stream, more: u64) {
    // SAFETY: the code passes a stream of the graph, which nothing else uses while it runs.
    let stream = unsafe { &mut *stream };
    let mut bytes = take(stream);
    bytes.reserve(more as usize);
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    stream.data = bytes.as_mut_ptr();
    stream.length = bytes.len() as u64;
    stream.capacity = bytes.capacity() as u64;
}

/// Allocates a buffer for a packet. All buffers are freed with the graph.
unsafe extern "C" fn allocate(runtime: *mut abi::Runtime, bytes: u64) -> *mut u8 {
    // SAFETY: the code passes its own runtime; nothing else accesses this field during a run.
    let buffers = unsafe { &mut (*runtime).buffers };
    let words = (bytes as usize).div_ceil(size_of::<abi::PoolWord>());
    buffers.push(vec![abi::PoolWord([0; 64]); words].into_boxed_slice());
    buffers.last_mut().map_or(ptr::null_mut(), |buffer| buffer.as_mut_ptr().cast())
}

/// Frees a buffer that `allocate` returned.
unsafe extern "C" fn release(runtime: *mut abi::Runtime, data: *mut u8) {
    // SAFETY: as in `allocate`.
    let buffers = unsafe { &mut (*runtime).buffers };
    buffers.retain(|buffer| !std::ptr::eq(buffer.as_ptr().cast(), data));
}
