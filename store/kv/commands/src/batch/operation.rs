// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The meaning of each operation, on both ways of execution.

use freeport_kv_functions::{Deltas, Element, Error as FunctionError, Registry};
use freeport_kv_keyspace::Error as ValueError;
use freeport_kv_protocol::batch::{Opcode, Operation, Status};

use super::conditions::Replies;
use super::effect::Effect;
use super::functions;
use super::target::Target;
use crate::error::Error;

/// Text of a vector that does not fit into a reply, so it was not changed.
const TOO_LONG: &str = "the original does not fit in a packet; ask for no return";
const HELLO: &str = "ERR hello has to be the first operation of a connection";

/// Executes an operation, and writes its reply.
#[inline(always)]
pub(super) fn perform(
    operation: &Operation<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
    stops_when_full: bool,
) -> Effect {
    match operation.opcode {
        Opcode::Get => match target.string() {
            Ok(Some(value)) => replies.found(operation, value, Effect::Hit),
            Ok(None) => replies.missing(Effect::Miss),
            Err(error) => replies.refuse_value(error),
        },
        Opcode::Put => match target.set(operation.value) {
            Ok(()) => {
                replies.done();
                Effect::Put
            }
            Err(ValueError::OutOfMemory) if stops_when_full => Effect::Full,
            Err(error) => replies.refuse_value(error),
        },
        Opcode::Delete => match target.remove() {
            true => {
                replies.done();
                Effect::Deleted
            }
            false => replies.missing(Effect::None),
        },
        _ => call(operation, target, registry, replies),
    }
}

/// Executes any operation but a get, put or delete, and writes its reply.
#[inline(never)]
pub(super) fn call(
    operation: &Operation<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
) -> Effect {
    let called = match operation.opcode {
        Opcode::Update => update(operation, target, registry, replies),
        Opcode::UpdateSame => {
            update_vector(operation, Deltas::Same(operation.value), target, registry, replies)
        }
        Opcode::UpdateVector => {
            update_vector(operation, Deltas::Each(operation.value), target, registry, replies)
        }
        Opcode::Reduce => reduce(operation, target, registry, replies),
        Opcode::Filter => filter(operation, target, registry, replies),
        Opcode::Functions => {
            functions::list(registry, replies);
            Ok(Effect::None)
        }
        Opcode::Get | Opcode::Put | Opcode::Delete | Opcode::Hello => {
            return replies.fail(Status::Failed, HELLO);
        }
    };
    called.unwrap_or_else(|refusal| replies.refuse(&refusal))
}

/// Why an operation with a function did nothing.
enum Refusal {
    /// The value has another type.
    Value(ValueError),
    /// There is no such function or type of elements.
    Unknown(FunctionError),
    /// The function refused its operands or the value.
    Function(FunctionError),
    /// The reply does not fit in its packet.
    TooLong,
}

impl From<ValueError> for Refusal {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}

impl From<FunctionError> for Refusal {
    fn from(error: FunctionError) -> Self {
        Self::Function(error)
    }
}

fn element(operation: &Operation<'_>) -> Result<Element, Refusal> {
    Element::from_code(operation.element).ok_or(Refusal::Unknown(FunctionError::UnknownElement))
}

fn update(
    operation: &Operation<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
) -> Result<Effect, Refusal> {
    let function = registry.update(operation.function).map_err(Refusal::Unknown)?;
    let element = element(operation)?;
    if !operation.no_return && !replies.writer.fits(replies.output, element.width()) {
        return Err(Refusal::TooLong);
    }
    let updated = target.update(|value| function.scalar(element, value, operation.value))?;
    let Some(original) = updated.transpose()? else {
        return Ok(replies.missing(Effect::None));
    };
    match operation.no_return {
        true => replies.done(),
        false => {
            let bytes = original.bits().to_le_bytes();
            replies.writer.value(replies.output, &bytes[..element.width()]);
        }
    }
    Ok(Effect::Updated)
}

fn update_vector(
    operation: &Operation<'_>,
    deltas: Deltas<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
) -> Result<Effect, Refusal> {
    let function = registry.update(operation.function).map_err(Refusal::Unknown)?;
    let element = element(operation)?;
    let updated = target.update(|value| {
        if operation.no_return {
            function.vector(element, value, deltas, None)?;
            replies.done();
            return Ok(());
        }
        if !replies.writer.fits(replies.output, value.len()) {
            return Err(Refusal::TooLong);
        }
        // The original is the reply; it is taken back if the function refuses.
        let before = (replies.writer.clone(), replies.output.len());
        replies.writer.value(replies.output, value);
        function.vector(element, value, deltas, None).map_err(|error| {
            *replies.writer = before.0;
            replies.output.truncate(before.1);
            Refusal::Function(error)
        })
    })?;
    match updated {
        Some(updated) => updated.map(|()| Effect::VectorUpdated),
        None => Ok(replies.missing(Effect::None)),
    }
}

fn reduce(
    operation: &Operation<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
) -> Result<Effect, Refusal> {
    let function = registry.reduce(operation.function).map_err(Refusal::Unknown)?;
    let element = element(operation)?;
    match target.string()? {
        Some(value) => {
            let sigma = function.fold(element, value, operation.value)?;
            Ok(replies.found(operation, &sigma.bits().to_le_bytes(), Effect::None))
        }
        None => Ok(replies.missing(Effect::None)),
    }
}

fn filter(
    operation: &Operation<'_>,
    target: &mut impl Target,
    registry: &Registry,
    replies: &mut Replies<'_>,
) -> Result<Effect, Refusal> {
    let function = registry.filter(operation.function).map_err(Refusal::Unknown)?;
    let element = element(operation)?;
    match target.string()? {
        Some(value) => {
            let mut kept = vec![];
            function.keep(element, value, operation.value, &mut kept)?;
            Ok(replies.found(operation, &kept, Effect::None))
        }
        None => Ok(replies.missing(Effect::None)),
    }
}

impl Replies<'_> {
    #[inline(always)]
    fn done(&mut self) {
        self.writer.done(self.output);
    }

    /// Replies that there is no such key.
    #[inline(always)]
    fn missing(&mut self, effect: Effect) -> Effect {
        self.writer.status(self.output, Status::NotFound);
        effect
    }

    /// Replies with the value that a read returns. The effect is `effect` unless the value is too
    /// long.
    #[inline(always)]
    fn found(&mut self, operation: &Operation<'_>, value: &[u8], effect: Effect) -> Effect {
        if operation.no_return {
            self.done();
            return effect;
        }
        let fits = self.writer.fits(self.output, value.len());
        // A value that does not fit becomes an error here.
        self.writer.value(self.output, value);
        if fits { effect } else { Effect::Failed }
    }

    #[cold]
    fn refuse_value(&mut self, error: ValueError) -> Effect {
        let status = match error {
            ValueError::WrongType => Status::WrongType,
            ValueError::OutOfMemory => Status::OutOfMemory,
        };
        self.fail(status, Error::from(error).text())
    }

    #[cold]
    fn refuse(&mut self, refusal: &Refusal) -> Effect {
        match refusal {
            Refusal::Value(error) => self.refuse_value(*error),
            Refusal::Unknown(error) => self.fail(Status::Failed, Error::of(error).text()),
            Refusal::Function(error) => self.fail(Status::Refused, Error::of(error).text()),
            Refusal::TooLong => self.fail(Status::Failed, TOO_LONG),
        }
    }

    #[cold]
    fn fail(&mut self, status: Status, text: &str) -> Effect {
        self.writer.error(self.output, status, text);
        Effect::Failed
    }
}
