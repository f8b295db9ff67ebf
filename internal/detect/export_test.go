package detect

// JudgeAll lets every rule judge every series that it selects, whether it can be abnormal or not: as slow as it is simple.
func (d *Detector) JudgeAll() { d.plan.all = true }

// Areas is how many areas of the help desk are told apart.
func (d *Detector) Areas() int { return len(d.desk) }
