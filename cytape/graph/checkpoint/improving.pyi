from cytape.graph.checkpoint.schedules import Program, Schedule

def improved(
    program: Program, schedule: Schedule, budget: int, most_trials: int
) -> Schedule: ...
