// The fields of a plan in JSON, both ways.
#pragma once

#include "base/json_archive.h"
#include "plan/plan.h"

namespace faultline {

template <>
inline constexpr std::size_t kValueCount<Verdict> = static_cast<std::size_t>(Verdict::kInterrupted) + 1;
template <>
inline constexpr std::size_t kValueCount<StoppedBy> = static_cast<std::size_t>(StoppedBy::kSeconds) + 1;
template <>
inline constexpr std::size_t kValueCount<NoteKind> = static_cast<std::size_t>(NoteKind::kValue) + 1;
template <>
inline constexpr std::size_t kValueCount<ChangeKind> = static_cast<std::size_t>(ChangeKind::kProgram) + 1;

void fields(auto& archive, Location& location) {
  archive("file", location.file);
  archive("line", location.line);
  archive("function", location.function);
  archive("op", location.op);
  archive("kernel", location.kernel);
}

void fields(auto& archive, PlanGpu& gpu) {
  archive("name", gpu.name);
  archive("capacity", gpu.capacity_bytes);
  archive("capacity_source", gpu.capacity_source);
  archive("context", gpu.context_bytes);
  archive("context_source", gpu.context_source);
}

void fields(auto& archive, PlanFit& fit) {
  fields(archive, fit.gpu);
  archive("fits", fit.fits);
  archive("perhaps", fit.perhaps);
}

void fields(auto& archive, PlanEstimate& estimate) {
  archive("what", estimate.what);
  archive("count", estimate.count);
  archive("largest", estimate.largest_bytes);
}

void fields(auto& archive, PlanDevice& device) {
  archive("index", device.index);
  archive("allocated", device.allocated_bytes);
  archive("reserved", device.reserved_bytes);
}

void fields(auto& archive, PlanModule& module) {
  archive("path", module.path);
  archive("count", module.count);
  archive("bytes", module.bytes);
  archive("live", module.live);
}

void fields(auto& archive, PlanPhase& phase) {
  archive("name", phase.name);
  archive("times", phase.times);
  archive("allocated", phase.allocated_bytes);
  archive("location", phase.location);
}

void fields(auto& archive, PlanNote& note) {
  archive("kind", note.kind);
  archive("text", note.text);
  archive("line", note.line);
  archive("count", note.count);
  archive("verdict", note.verdict);
  archive("most", note.most);
}

void fields(auto& archive, PlanLoop& loop) {
  archive("where", loop.where);
  archive("rounds", loop.rounds);
  archive("steps", loop.steps);
  archive("begun", loop.begun);
}

void fields(auto& archive, PlanFilling& filling) {
  archive("line", filling.line);
  archive("told_less", filling.told_less_bytes);
  archive("took_less", filling.took_less_bytes);
}

void fields(auto& archive, PlanVary& vary) {
  archive("name", vary.name);
  archive("where", vary.where);
  archive("current", vary.current);
  archive("largest_fitting", vary.largest_fitting);
  archive("tight", vary.tight);
  archive("smallest_failing", vary.smallest_failing);
  archive("runs", vary.runs);
  archive("stopped", vary.stopped);
  archive("why_not", vary.why_not);
  archive("accumulated", vary.accumulated);
  archive("command", vary.command);
  archive("diff", vary.diff);
  archive("without_edit", vary.without_edit);
  archive("batches", vary.batches);
  archive("batch", vary.batch);
}

void fields(auto& archive, PlanPair& pair) {
  archive("batch", pair.batch);
  archive("length", pair.length);
  archive("needed", pair.needed_bytes);
}

void fields(auto& archive, PlanJointly& jointly) {
  archive("batch_name", jointly.batch_name);
  archive("length_name", jointly.length_name);
  archive("batch", jointly.batch);
  archive("length", jointly.length);
  archive("fitting", jointly.fitting);
}

void fields(auto& archive, PlanException& exception) {
  archive("type", exception.type);
  archive("message", exception.message);
  archive("location", exception.location);
}

void fields(auto& archive, PlanEffects& effects) {
  archive("confined", effects.confined);
  archive("known", effects.known);
  archive("written", effects.written);
  archive("written_count", effects.written_count);
  archive("removed", effects.removed);
  archive("removed_count", effects.removed_count);
  archive("connections", effects.connections);
  archive("machines", effects.machines);
  archive("offline", effects.offline);
  archive("ran_out_of_space", effects.ran_out_of_space);
  archive("input_was_cut", effects.input_was_cut);
  archive("done_for_real", effects.done_for_real);
  archive("unsent_signals", effects.unsent_signals);
  archive("unsent_count", effects.unsent_count);
}

void fields(auto& archive, PlanBudget& budget) {
  archive("bytes", budget.bytes);
  archive("needed", budget.needed_bytes);
  archive.derived("over", budget.over_bytes());
  archive("at_least", budget.at_least);
  archive("why_not", budget.why_not);
}

void fields(auto& archive, PlanLineChange& line) {
  archive("location", line.location);
  archive("category", line.category);
  archive("before", line.before_bytes);
  archive("now", line.now_bytes);
  archive("count", line.count);
}

void fields(auto& archive, PlanComparison& comparison) {
  archive("base", comparison.base);
  archive("before", comparison.before_bytes);
  archive("needed", comparison.needed_bytes);
  archive.derived("grown", comparison.grown_bytes());
  archive("allowed", comparison.allowed_bytes);
  archive("allowed_as", comparison.allowed);
  archive.derived("too_much", comparison.is_too_much());
  archive("lines", comparison.lines);
  archive("differences", comparison.differences);
  archive("why_not", comparison.why_not);
}

void fields(auto& archive, PlanVersions& versions) {
  archive("faultline", versions.faultline);
  archive("framework", versions.framework);
}

template <class Archive>
void fields(Archive& archive, Plan& plan) {
  if constexpr (!Archive::kWrites) plan.verdict = Verdict::kInterrupted;  // for a word that is not known
  archive("verdict", plan.verdict);
  archive("command", plan.command);
  archive("exit_status", plan.run.exit_status);
  archive("gpu", plan.gpu);
  archive("device", plan.device);
  archive("devices", plan.devices);
  archive("context", plan.context_bytes);
  archive("needed", plan.need.bytes);
  archive("needed_least", plan.need.least_bytes);
  archive("needed_most", plan.need.most_bytes);
  archive("estimates", plan.need.estimates);
  archive("together", plan.need.together_bytes);
  archive("taken", plan.need.taken_bytes);
  archive("limit", plan.need.limit_bytes);
  bool is_there = true;
  archive.group("peak", is_there, [&](auto& peak) {
    peak("allocated", plan.peak.allocated_bytes);
    peak("reserved", plan.peak.reserved_bytes);
    peak("outside_framework", plan.peak.outside_bytes);
    peak("live", plan.peak.live);
    peak("allocated_least", plan.peak.least.allocated_bytes);
    peak("allocated_most", plan.peak.most.allocated_bytes);
    peak("reserved_least", plan.peak.least.reserved_bytes);
    peak("reserved_most", plan.peak.most.reserved_bytes);
  });
  bool has_pool = !plan.pool.framework.empty();
  archive.group("pool", has_pool, [&](auto& pool) {
    pool("framework", plan.pool.framework);
    pool("needed", plan.pool.bytes);
    pool("share", plan.pool.share);
  });
  archive("modules", plan.peak.modules);
  archive("phases", plan.run.phases);
  archive("failed_phase", plan.failure.phase);
  archive("not_reached", plan.run.not_reached);
  archive.group("failure", plan.failure.happened, [&](auto& failure) {
    failure("step", plan.failure.in_step);
    failure("steps_before", plan.failure.steps_before);
    failure("location", plan.failure.at);
  });
  archive("caught_failures", plan.failure.caught);
  archive("steps", plan.run.steps);
  archive("optimizers", plan.run.optimizers);
  archive("needed_is_least", plan.need.is_least);
  archive("alike_from", plan.run.alike_from);
  archive("interrupted", plan.run.interrupted);
  archive("most_turns", plan.run.most_turns);
  archive("least_turns", plan.run.least_turns);
  archive("stopped", plan.run.stopped);
  archive("stopped_by", plan.run.stopped_by);
  archive("stop_asked", plan.run.stop_asked);
  archive("how", plan.run.how);
  archive("seconds", plan.run.seconds);
  archive("operations", plan.run.operations);
  archive("processes", plan.run.processes);
  archive("exception", plan.trouble.exception);
  archive("unplanned", plan.trouble.unplanned);
  archive("unplanned_line", plan.trouble.unplanned_line);
  archive("nothing_seen", plan.trouble.nothing_seen);
  archive("stand_in_line", plan.trouble.stand_in_line);
  archive("until_step", plan.growth.until);
  archive("until_latest", plan.growth.until_latest);
  archive("until_unit", plan.growth.unit);
  archive("loop", plan.growth.loop);
  archive("needed_at_end", plan.growth.needed_at_end_bytes);
  archive("fits", plan.fits);
  archive.each("changes", plan.tried.changes, [&](auto& inside, PlanChange& change) {
    inside("kind", change.kind);
    inside("what", change.what);
    inside("detail", change.detail);
    inside("tried", change.tried);
    inside("begun", change.begun);
    inside("fits", change.fits);
    inside("needed", change.needed_bytes);
    inside("needed_most", change.needed_most_bytes);
    inside.derived("saves", plan.saved_bytes(change));
    inside("why_not", change.why_not);
    inside("remedies", change.remedies);
    inside("cost", change.cost);
    inside("label", change.label);
    inside("instructions", change.instructions);
    inside("diff", change.diff);
    inside("without_edit", change.without_edit);
    inside("until", change.until);
    inside("until_unit", change.until_unit);
  });
  archive("changes_skipped", plan.tried.skipped);
  archive("vary", plan.tried.vary);
  archive("jointly", plan.tried.jointly);
  archive.each("where", plan.tried.where, [&](auto& inside, PlanWhere& where) {
    inside("gpu", where.gpu);
    inside("with", where.with);
    inside("until", where.until);
  });
  archive("filling", plan.need.filling);
  if (!Archive::kWrites || plan.limits.budget) archive("budget", plan.limits.budget);
  if (!Archive::kWrites || plan.limits.comparison) archive("comparison", plan.limits.comparison);
  if (!Archive::kWrites || !plan.versions.faultline.empty()) archive("versions", plan.versions);
  archive("notes", plan.notes);
  archive("effects", plan.effects);
  archive("folder", plan.folder);
  archive("trace", plan.trace);
}

}  // namespace faultline
