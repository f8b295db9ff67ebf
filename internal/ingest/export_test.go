package ingest

// BreakRules lets a test see that a rule of the protocol is needed.
func (l *Loop) BreakRules(withoutReservation, trustUnknown bool) {
	l.withoutReservation, l.trustUnknown = withoutReservation, trustUnknown
}
