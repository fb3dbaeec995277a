"""What a proposal saves on each real history, and what of the later used strings it keeps.

Prints a Markdown table: embedded model, options of live agents, each history cut at three places.
``merged`` holds a whole reply in one message, as AgentScope does; ``split`` one message per step.
The shipped weights were fitted on these very histories, so "strings kept" flatters; the honest
measurement, with each history left out of the fit, is ``benchmarks.quality``.
"""

from __future__ import annotations

import asyncio

from agentscope_compaction import CompactionOptions, CompactionProposal, compact_context
from benchmarks.kit.histories import Sample, holds, load, normal, shared_folder, texts_of


async def propose(sample: Sample) -> CompactionProposal:
    """Propose with the embedded model and the options of live agents."""
    request = {
        "messages": sample.messages,
        "goal": sample.goal,
        "eligible_tool_names": sorted(set(sample.tools)),
        "options": CompactionOptions.for_agents(),
    }
    return await compact_context(request)


def row(sample: Sample, proposal: CompactionProposal) -> str:
    """One line of the table."""
    stats, actions = proposal.stats, [d.action.value for d in proposal.decisions if d.applied]
    text = normal("\n".join(texts_of(proposal.messages)))
    held = sum(holds(text, requirement) for requirement in sample.requirements)
    before, after = stats["chars_before"], stats["chars_after"]
    cells = [
        *(sample.name, sample.cut.removeprefix("cut") + " %", sample.shape),
        f"{len(proposal.decisions)}",
        f"{actions.count('drop_result')} / {actions.count('drop_call')}",
        *(f"{before:,}", f"{after:,}", f"{1 - after / before:.0%}"),
        f"{held} / {len(sample.requirements)}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or say where the histories were looked for."""
    samples = load(shapes=("merged", "split"))
    if not samples:
        print(f"no labelled histories in {shared_folder()}")
        return
    heads = "history, cut, shape, calls, cut / removed, chars before, after, saved, strings kept"
    print(f"| {heads.replace(', ', ' | ')} |")
    print(f"|{'---|' * 9}")
    total = {"merged": [0, 0], "split": [0, 0]}
    for sample in sorted(samples, key=lambda s: (s.name, s.cut, s.shape)):
        proposal = asyncio.run(propose(sample))
        print(row(sample, proposal), flush=True)
        total[sample.shape][0] += proposal.stats["chars_before"]
        total[sample.shape][1] += proposal.stats["chars_after"]
    for shape, (before, after) in total.items():
        saved = f"{1 - after / before:.1%}"
        print(f"\n{shape}: {before:,} characters before, {after:,} after, {saved} saved")


if __name__ == "__main__":
    main()
