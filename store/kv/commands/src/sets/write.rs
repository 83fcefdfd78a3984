// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members are added, removed and moved.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::Set;

use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `SADD key member [member ...]`
pub fn sadd(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, members) = (call.arguments[1], &call.arguments[2..]);
    let added = call.database.change::<Set, _>(key, |set, limits| {
        if members.len() > 1 && set.view().is_empty() {
            *set = Set::for_members(limits, members[0], members.len());
        }
        members.iter().filter(|member| set.add(limits, **member)).count()
    })?;
    if added > 0 {
        call.database.changed(key, Class::Set, "sadd");
    }
    call.reply.integer(added as i64);
    Ok(())
}

/// `SREM key member [member ...]`
pub fn srem(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, members) = (call.arguments[1], &call.arguments[2..]);
    let removed = call.database.shrink::<Set, _>(key, |set, _| {
        members.iter().filter(|member| set.remove(**member)).count()
    })?;
    if removed > 0 {
        call.database.changed_or_removed(key, Class::Set, "srem");
    }
    call.reply.integer(removed as i64);
    Ok(())
}

/// `SMOVE source destination member`
///
/// The member comes to the destination first, so that it is in no place lost if memory ends.
pub fn smove(call: &mut Call<'_>) -> Result<(), Error> {
    let (source, target) = (call.arguments[1], call.arguments[2]);
    let member = call.arguments[3];
    let Some(set) = call.database.read::<Set>(source)? else {
        call.reply.raw(shared::ZERO);
        return Ok(());
    };
    let is_member = set.contains(member);
    call.database.read::<Set>(target)?;
    if !is_member || source == target {
        call.reply.integer(i64::from(is_member));
        return Ok(());
    }
    let is_new = call.database.change::<Set, _>(target, |set, limits| set.add(limits, member))?;
    if let Err(error) = call.database.shrink::<Set, _>(source, |set, _| set.remove(member)) {
        if is_new {
            call.database.shrink::<Set, _>(target, |set, _| set.remove(member))?;
        }
        return Err(error);
    }
    call.database.changed_or_removed(source, Class::Set, "srem");
    if is_new {
        call.database.changed(target, Class::Set, "sadd");
    }
    call.reply.raw(shared::ONE);
    Ok(())
}
