package openflow

// The codes of errors (section 7.4.4). A code has a meaning only together with its ErrorType, which begins its name.

// The codes of ErrHelloFailed.
const (
	HelloIncompatible uint16 = iota
	HelloEPerm
)

// The codes of ErrBadRequest.
const (
	RequestBadVersion uint16 = iota
	RequestBadType
	RequestBadMultipart
	RequestBadExperimenter
	RequestBadExpType
	RequestEPerm
	RequestBadLen
	RequestBufferEmpty
	RequestBufferUnknown
	RequestBadTableID
	RequestIsSlave
	RequestBadPort
	RequestBadPacket
	RequestMultipartBufferOverflow
)

// The codes of ErrBadAction.
const (
	ActionBadType uint16 = iota
	ActionBadLen
	ActionBadExperimenter
	ActionBadExpType
	ActionBadOutPort
	ActionBadArgument
	ActionEPerm
	ActionTooMany
	ActionBadQueue
	ActionBadOutGroup
	ActionMatchInconsistent
	ActionUnsupportedOrder
	ActionBadTag
	ActionBadSetType
	ActionBadSetLen
	ActionBadSetArgument
)

// The codes of ErrBadInstruction.
const (
	InstructionUnknownInst uint16 = iota
	InstructionUnsupInst
	InstructionBadTableID
	InstructionUnsupMetadata
	InstructionUnsupMetadataMask
	InstructionBadExperimenter
	InstructionBadExpType
	InstructionBadLen
	InstructionEPerm
)

// The codes of ErrBadMatch.
const (
	MatchBadType uint16 = iota
	MatchBadLen
	MatchBadTag
	MatchBadDlAddrMask
	MatchBadNwAddrMask
	MatchBadWildcards
	MatchBadField
	MatchBadValue
	MatchBadMask
	MatchBadPrereq
	MatchDupField
	MatchEPerm
)

// The codes of ErrFlowModFailed.
const (
	FlowModUnknown uint16 = iota
	FlowModTableFull
	FlowModBadTableID
	FlowModOverlap
	FlowModEPerm
	FlowModBadTimeout
	FlowModBadCommand
	FlowModBadFlags
)

// The codes of ErrGroupModFailed.
const (
	GroupModGroupExists uint16 = iota
	GroupModInvalidGroup
	GroupModWeightUnsupported
	GroupModOutOfGroups
	GroupModOutOfBuckets
	GroupModChainingUnsupported
	GroupModWatchUnsupported
	GroupModLoop
	GroupModUnknownGroup
	GroupModChainedGroup
	GroupModBadType
	GroupModBadCommand
	GroupModBadBucket
	GroupModBadWatch
	GroupModEPerm
)

// The codes of ErrPortModFailed.
const (
	PortModBadPort uint16 = iota
	PortModBadHWAddr
	PortModBadConfig
	PortModBadAdvertise
	PortModEPerm
)

// The codes of ErrTableModFailed.
const (
	TableModBadTable uint16 = iota
	TableModBadConfig
	TableModEPerm
)

// The codes of ErrQueueOpFailed.
const (
	QueueOpBadPort uint16 = iota
	QueueOpBadQueue
	QueueOpEPerm
)

// The codes of ErrSwitchConfigFailed.
const (
	SwitchConfigBadFlags uint16 = iota
	SwitchConfigBadLen
	SwitchConfigEPerm
)

// The codes of ErrRoleRequestFailed.
const (
	RoleRequestStale uint16 = iota
	RoleRequestUnsup
	RoleRequestBadRole
)

// The codes of ErrMeterModFailed.
const (
	MeterModUnknown uint16 = iota
	MeterModMeterExists
	MeterModInvalidMeter
	MeterModUnknownMeter
	MeterModBadCommand
	MeterModBadFlags
	MeterModBadRate
	MeterModBadBurst
	MeterModBadBand
	MeterModBadBandValue
	MeterModOutOfMeters
	MeterModOutOfBands
)

// The codes of ErrTableFeaturesFailed.
const (
	TableFeaturesBadTable uint16 = iota
	TableFeaturesBadMetadata
	TableFeaturesBadType
	TableFeaturesBadLen
	TableFeaturesBadArgument
	TableFeaturesEPerm
)

// The codes of errors of bundles (ONF EXT-230): ErrExperimenter, experimenter ONF.
const (
	BundleUnknown uint16 = iota + firstBundleError
	BundleEPerm
	BundleBadID
	BundleExist
	BundleClosed
	BundleOutOfs
	BundleBadType
	BundleBadFlags
	BundleMsgBadLen
	BundleMsgBadXID
	BundleMsgUnsup
	BundleMsgConflict
	BundleMsgTooMany
	BundleMsgFailed
	BundleTimeout
	BundleInProgress
)

const firstBundleError = 2300

// codeNames has the names of the specification of all codes, by type and code.
var codeNames = [...][]string{
	ErrHelloFailed:         {"OFPHFC_INCOMPATIBLE", "OFPHFC_EPERM"},
	ErrBadRequest:          {"OFPBRC_BAD_VERSION", "OFPBRC_BAD_TYPE", "OFPBRC_BAD_MULTIPART", "OFPBRC_BAD_EXPERIMENTER", "OFPBRC_BAD_EXP_TYPE", "OFPBRC_EPERM", "OFPBRC_BAD_LEN", "OFPBRC_BUFFER_EMPTY", "OFPBRC_BUFFER_UNKNOWN", "OFPBRC_BAD_TABLE_ID", "OFPBRC_IS_SLAVE", "OFPBRC_BAD_PORT", "OFPBRC_BAD_PACKET", "OFPBRC_MULTIPART_BUFFER_OVERFLOW"},
	ErrBadAction:           {"OFPBAC_BAD_TYPE", "OFPBAC_BAD_LEN", "OFPBAC_BAD_EXPERIMENTER", "OFPBAC_BAD_EXP_TYPE", "OFPBAC_BAD_OUT_PORT", "OFPBAC_BAD_ARGUMENT", "OFPBAC_EPERM", "OFPBAC_TOO_MANY", "OFPBAC_BAD_QUEUE", "OFPBAC_BAD_OUT_GROUP", "OFPBAC_MATCH_INCONSISTENT", "OFPBAC_UNSUPPORTED_ORDER", "OFPBAC_BAD_TAG", "OFPBAC_BAD_SET_TYPE", "OFPBAC_BAD_SET_LEN", "OFPBAC_BAD_SET_ARGUMENT"},
	ErrBadInstruction:      {"OFPBIC_UNKNOWN_INST", "OFPBIC_UNSUP_INST", "OFPBIC_BAD_TABLE_ID", "OFPBIC_UNSUP_METADATA", "OFPBIC_UNSUP_METADATA_MASK", "OFPBIC_BAD_EXPERIMENTER", "OFPBIC_BAD_EXP_TYPE", "OFPBIC_BAD_LEN", "OFPBIC_EPERM"},
	ErrBadMatch:            {"OFPBMC_BAD_TYPE", "OFPBMC_BAD_LEN", "OFPBMC_BAD_TAG", "OFPBMC_BAD_DL_ADDR_MASK", "OFPBMC_BAD_NW_ADDR_MASK", "OFPBMC_BAD_WILDCARDS", "OFPBMC_BAD_FIELD", "OFPBMC_BAD_VALUE", "OFPBMC_BAD_MASK", "OFPBMC_BAD_PREREQ", "OFPBMC_DUP_FIELD", "OFPBMC_EPERM"},
	ErrFlowModFailed:       {"OFPFMFC_UNKNOWN", "OFPFMFC_TABLE_FULL", "OFPFMFC_BAD_TABLE_ID", "OFPFMFC_OVERLAP", "OFPFMFC_EPERM", "OFPFMFC_BAD_TIMEOUT", "OFPFMFC_BAD_COMMAND", "OFPFMFC_BAD_FLAGS"},
	ErrGroupModFailed:      {"OFPGMFC_GROUP_EXISTS", "OFPGMFC_INVALID_GROUP", "OFPGMFC_WEIGHT_UNSUPPORTED", "OFPGMFC_OUT_OF_GROUPS", "OFPGMFC_OUT_OF_BUCKETS", "OFPGMFC_CHAINING_UNSUPPORTED", "OFPGMFC_WATCH_UNSUPPORTED", "OFPGMFC_LOOP", "OFPGMFC_UNKNOWN_GROUP", "OFPGMFC_CHAINED_GROUP", "OFPGMFC_BAD_TYPE", "OFPGMFC_BAD_COMMAND", "OFPGMFC_BAD_BUCKET", "OFPGMFC_BAD_WATCH", "OFPGMFC_EPERM"},
	ErrPortModFailed:       {"OFPPMFC_BAD_PORT", "OFPPMFC_BAD_HW_ADDR", "OFPPMFC_BAD_CONFIG", "OFPPMFC_BAD_ADVERTISE", "OFPPMFC_EPERM"},
	ErrTableModFailed:      {"OFPTMFC_BAD_TABLE", "OFPTMFC_BAD_CONFIG", "OFPTMFC_EPERM"},
	ErrQueueOpFailed:       {"OFPQOFC_BAD_PORT", "OFPQOFC_BAD_QUEUE", "OFPQOFC_EPERM"},
	ErrSwitchConfigFailed:  {"OFPSCFC_BAD_FLAGS", "OFPSCFC_BAD_LEN", "OFPSCFC_EPERM"},
	ErrRoleRequestFailed:   {"OFPRRFC_STALE", "OFPRRFC_UNSUP", "OFPRRFC_BAD_ROLE"},
	ErrMeterModFailed:      {"OFPMMFC_UNKNOWN", "OFPMMFC_METER_EXISTS", "OFPMMFC_INVALID_METER", "OFPMMFC_UNKNOWN_METER", "OFPMMFC_BAD_COMMAND", "OFPMMFC_BAD_FLAGS", "OFPMMFC_BAD_RATE", "OFPMMFC_BAD_BURST", "OFPMMFC_BAD_BAND", "OFPMMFC_BAD_BAND_VALUE", "OFPMMFC_OUT_OF_METERS", "OFPMMFC_OUT_OF_BANDS"},
	ErrTableFeaturesFailed: {"OFPTFFC_BAD_TABLE", "OFPTFFC_BAD_METADATA", "OFPTFFC_BAD_TYPE", "OFPTFFC_BAD_LEN", "OFPTFFC_BAD_ARGUMENT", "OFPTFFC_EPERM"},
}

var bundleCodeNames = [...]string{"OFPBFC_UNKNOWN", "OFPBFC_EPERM", "OFPBFC_BAD_ID", "OFPBFC_BUNDLE_EXIST", "OFPBFC_BUNDLE_CLOSED", "OFPBFC_OUT_OF_BUNDLES", "OFPBFC_BAD_TYPE", "OFPBFC_BAD_FLAGS", "OFPBFC_MSG_BAD_LEN", "OFPBFC_MSG_BAD_XID", "OFPBFC_MSG_UNSUP", "OFPBFC_MSG_CONFLICT", "OFPBFC_MSG_TOO_MANY", "OFPBFC_MSG_FAILED", "OFPBFC_TIMEOUT", "OFPBFC_BUNDLE_IN_PROGRESS"}
