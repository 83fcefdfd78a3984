// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions in the reference interpreter, for machines without a C compiler, and to compare native
//! code with. The methods are those of [`freeport_native::Kernels`].
//!
//! An interpreter has one caller at a time. Each thread that calls takes an idle one, or makes one,
//! so there are at most as many as threads.

use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{
    Bits, Element, ElementId, Function, FunctionId, Instance, InstanceId, Loc, Method, Program,
    Term,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of a program.
pub(crate) struct Interpreted {
    program: Arc<Program>,
    /// By number of the function.
    arguments: Vec<Arguments>,
    idle: Mutex<Vec<Interpreter<'static>>>,
}

/// Widths of the parameters of a function in bits.
struct Arguments {
    method: String,
    element: u32,
    operands: Vec<u32>,
}

impl Interpreted {
    /// Prepares functions, which have no owner and no effects and were proven to end.
    pub fn new(program: &Program, functions: &[FunctionId]) -> Self {
        let mut program = program.clone();
        // Afterwards no function calls another one, and each can be a method.
        passes::run(&mut program, &PassSet::for_cpu());
        let mut handler = Function::new("handler", Some(ElementId(0)), Loc::default());
        handler.blocks[0].term = Term::Done { mask: None };
        program.functions.push(handler);
        let methods: Vec<Method> = functions.iter().enumerate().map(method).collect();
        let arguments = methods.iter().map(|method| {
            let function = program.function(method.function);
            let mut widths = function.params().iter().map(|param| function.width_of(*param));
            let element = widths.next().expect("a function to register has an element");
            Arguments { method: method.name.clone(), element, operands: widths.collect() }
        });
        let arguments = arguments.collect();
        for method in &methods {
            program.functions[method.function.index()].owner = Some(ElementId(0));
        }
        let handler = FunctionId::new(program.functions.len() - 1);
        program.elements = vec![owner(methods, handler)];
        program.graph.instances = vec![Instance {
            name: "functions".into(),
            element: ElementId(0),
            host: false,
            controlled: false,
            verilog: false,
            loc: Loc::default(),
        }];
        Self { program: Arc::new(program), arguments, idle: Mutex::default() }
    }

    /// Replaces all elements by function `at` of them and the same operands.
    pub fn map_same(&self, at: usize, values: &mut [u8], operands: &[u8]) {
        self.run(at, |call, arguments| {
            for value in values.chunks_exact_mut(arguments.bytes()) {
                value.copy_from_slice(&call(value, operands).to_le_bytes());
            }
        });
    }

    /// Replaces all elements by function `at` of them and their own operands.
    pub fn map_each(&self, at: usize, values: &mut [u8], operands: &[u8]) {
        self.run(at, |call, arguments| {
            let stride = arguments.bytes() * arguments.operands.len();
            for (index, value) in values.chunks_exact_mut(arguments.bytes()).enumerate() {
                let own = &operands[index * stride..][..stride];
                value.copy_from_slice(&call(value, own).to_le_bytes());
            }
        });
    }

    /// Folds all elements in their order.
    pub fn fold(&self, at: usize, values: &[u8], sigma: u64) -> u64 {
        self.run(at, |call, arguments| {
            let values = values.chunks_exact(arguments.bytes());
            values.fold(sigma, |sigma, value| call(value, &sigma.to_le_bytes()).to_u64())
        })
    }

    /// Sets the flag of each element to 1 if condition `at` holds for it, and else to 0.
    pub fn test(&self, at: usize, values: &[u8], operands: &[u8], flags: &mut [u8]) {
        self.run(at, |call, arguments| {
            for (value, flag) in values.chunks_exact(arguments.bytes()).zip(flags) {
                *flag = u8::from(!call(value, operands).is_zero());
            }
        });
    }

    /// Gives `work` a function that calls function `at` with an element and its operands.
    fn run<T>(
        &self,
        at: usize,
        work: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Bits, &Arguments) -> T,
    ) -> T {
        let arguments = &self.arguments[at];
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut interpreter = idle.unwrap_or_else(|| self.interpreter());
        let mut call = |value: &[u8], operands: &[u8]| {
            let args = arguments.of(value, operands);
            let result = interpreter.call_method(InstanceId(0), &arguments.method, args);
            interpreter.forget_record();
            let traps = &interpreter.counters(InstanceId(0)).traps;
            debug_assert!(traps.is_empty(), "functions that can trap are refused: {traps:?}");
            result.ok().flatten().expect("the method exists, and returns a value")
        };
        let result = work(&mut call, arguments);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(interpreter);
        result
    }

    fn interpreter(&self) -> Interpreter<'static> {
        let options = Options { keep_histories: false, ..Options::default() };
        let interpreter = Interpreter::new(Arc::clone(&self.program), &options);
        interpreter.expect("an element without ports and state needs no memory")
    }
}

impl Arguments {
    /// Size of an element in bytes.
    fn bytes(&self) -> usize {
        self.element as usize / 8
    }

    fn of(&self, value: &[u8], operands: &[u8]) -> Vec<Bits> {
        let mut args = vec![Bits::from_le_bytes(self.element, value)];
        let mut rest = operands;
        for width in &self.operands {
            let (own, next) = rest.split_at(*width as usize / 8);
            args.push(Bits::from_le_bytes(*width, own));
            rest = next;
        }
        args
    }
}

fn method((at, function): (usize, &FunctionId)) -> Method {
    Method { name: format!("function_{at}"), function: *function }
}

/// Returns the element that owns the functions.
fn owner(methods: Vec<Method>, handler: FunctionId) -> Element {
    Element {
        name: "functions".into(),
        inputs: vec![],
        outputs: vec![],
        state: vec![],
        tables: vec![],
        init: None,
        handler,
        signal: None,
        methods,
        await_all: false,
        initiation_interval: 1,
        loc: Loc::default(),
    }
}
