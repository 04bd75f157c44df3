"""The closed list of reasons, as tenants and operators read them in conditions, events and answers."""

from enum import StrEnum


class Wait(StrEnum):
    """Why a set has no node yet. Kept in the order of how near a set is to its place: later is nearer."""

    PAUSED = "Paused"
    RELEASED = "ReleasedByOperator"
    NO_LAUNCHER = "NoLauncher"
    CLASS_NOT_FOUND = "ClassNotFound"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    CLAIM_IN_USE = "ClaimInUse"
    FOREIGN_GATE = "ForeignGate"
    REQUESTS_MISMATCH = "RequestsMismatch"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    OVER_BUDGET = "OverBudget"
    NO_SUCH_DEVICE = "NoNodeOffersClass"
    NODE_NOT_READY = "NodeNotReady"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    NODE_AFFINITY = "NodeAffinityMismatch"
    VOLUME_ELSEWHERE = "VolumeOnOtherNode"
    NO_ROOM = "NoRoom"
    NODE_KEPT = "NodeKeptForAnother"
    NO_ROOM_OTHER = "NoRoomForOtherResources"
    NODE_SKIPPED = "NodeSkipped"
    WRITE_REFUSED = "WriteRefused"


class Refusal(StrEnum):
    """Why an admission request was refused."""

    MALFORMED = "MalformedAnnotation"
    CLASS_NOT_FOUND = "ClassNotFound"
    CLASS_DELETED = "ClassBeingDeleted"
    CLASS_CONFLICT = "ResourceNameConflict"
    OWN_GPUS = "OwnGPUEntries"
    RESOURCE_KEY = "ResourceKey"
    NOT_KUBEVIRT = "NotCreatedByKubeVirt"
    RESERVED_MARK = "ReservedMark"
    UNSUPPORTED = "Unsupported"  # of logs from before held claims could be named
    CLAIM_NOT_FOUND = "ClaimNotFound"
    CLAIM_DELETED = "ClaimBeingDeleted"
    TEMPLATE_CLAIM = "TemplateClaim"
    OVER_MAXIMUM = "OverMaximumCount"
    VGPU_MIX = "VGPUClassesMixed"
    NO_ENTITLEMENT = "NoVGPUEntitlement"
    NOT_PERMITTED = "NotPermittedByKubeVirt"
    UNKNOWN_VMI = "UnknownVMI"
    # Of a start under policy Refuse that can't be booked now, in the words of `Wait`; of writes and orders too.
    CLAIM_IN_USE = "ClaimInUse"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    OVER_BUDGET = "OverBudget"
    NO_UNITS = "NotEnoughUnits"
    NOT_READY = "NotReady"
    NO_SUCH_DEVICE = "NoNodeOffersClass"
    NODE_NOT_READY = "NodeNotReady"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    NODE_AFFINITY = "NodeAffinityMismatch"
    VOLUME_ELSEWHERE = "VolumeOnOtherNode"
    NO_ROOM = "NoRoom"
    NODE_KEPT = "NodeKeptForAnother"
    NO_ROOM_OTHER = "NoRoomForOtherResources"
    NODE_SKIPPED = "NodeSkipped"
    SUPERSEDED = "SupersededByNewerRequest"
    NOT_COMPLETE = "GPUEntriesIncomplete"


class Hold(StrEnum):
    """Why a start under policy Refuse can't be decided yet."""

    NOT_WHOLE = "PictureNotWhole"
    PAUSED = "Paused"
    NAMESAKE = "FormerRunNotOver"
    IN_LINE = "BehindOthers"


class Order(StrEnum):
    """What an operator can tell the binder to do."""

    PAUSE = "pause"
    RESUME = "resume"
    UNSKIP = "unskip"
    MOVE = "move"
    RELEASE = "release"


class GiveUp(StrEnum):
    """Why a launcher is given up, and its node skipped for the VM (D7)."""

    REFUSED = "NodeRefused"
    NOT_SCHEDULED = "NotScheduled"


class Placing(StrEnum):
    """Why held claims came onto a node."""

    ORDERED = "Ordered"
    MOVED = "Moved"
    REBOUND = "Rebound"
    GATHERED = "Gathered"
    AGAIN = "SaidAgain"


class Unkept(StrEnum):
    """Why a node can't keep what is booked on it."""

    NODE_GONE = "NodeGone"
    NODE_NOT_READY = "NodeNotReady"
    NODE_TAINTED = "NodeTainted"
    UNITS_GONE = "UnitsGone"
    SPLIT = "NoNodeForAll"
    BEFORE = "LostBefore"
    WRITE_REFUSED = "WriteRefused"
    COMMANDED = "Commanded"


class Licence(StrEnum):
    """Whether a class's licence can be copied."""

    FOUND = "SourceFound"
    NO_SOURCE = "SecretNotFound"
    NO_KEY = "TokenKeyMissing"


class Release(StrEnum):
    """Why a booking ended."""

    LAUNCHER_ENDED = "LauncherEnded"
    LAUNCHER_GONE = "LauncherGone"
    LAUNCHER_CHANGED = "LauncherChanged"
    VMI_GONE = "VMIGone"
    NEVER_SEEN = "VMINeverSeen"
    WITHDRAWN = "RequestWithdrawn"
    SUPERSEDED = "SupersededByNewerRequest"
    PIN_REFUSED = "PinRefused"
    NODE_REFUSED = "NodeRefused"
    NODE_UNKEPT = "NodeCannotKeep"
    COMMANDED = "Commanded"
