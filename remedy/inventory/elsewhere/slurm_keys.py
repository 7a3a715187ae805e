"""The keys that slurm.conf may have.

All that Slurm 17.11 to 26.05 declare in src/common/read_config.c, as a file may be older than its Slurm. They
are read in any case of letters; a key that is not among them is an error to Slurm.
"""

from __future__ import annotations


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


SETTINGS = _keys(
    """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageLoc AccountingStorageParameters AccountingStoragePass AccountingStoragePort
    AccountingStorageTRES AccountingStorageType AccountingStorageUser AccountingStoreFlags
    AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInfinibandType
    AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage
    AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr BackupController BatchStartTimeout
    BcastExclude BcastParameters BurstBufferParameters BurstBufferType CacheGroups CertgenParameters
    CertgenType CertmgrParameters CertmgrType CheckpointType ChosLoc CliFilterParameters CliFilterPlugins
    ClusterName CommunicationParameters CompleteWait ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
    CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DefaultStorageHost
    DefaultStorageLoc DefaultStoragePass DefaultStoragePort DefaultStorageType DefaultStorageUser
    DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DefRuntimePlugin DependencyParameters
    DisableRootJobs DownNodes EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld
    EpilogTimeout ExtSensorsFreq ExtSensorsType FairShareDampeningFactor FastSchedule FederationParameters
    FirstJobId FrontendName GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin
    HealthCheckInterval HealthCheckNodeState HealthCheckProgram HealthCheckTimeout HttpParserType
    InactiveLimit InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType
    JobCheckpointDir JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort
    JobCompType JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate
    JobFileAppend JobRequeue JobSubmitPlugins KeepAliveTime KillOnBadExit KillWait LaunchParameters
    LaunchType Layouts LicenseParameters Licenses LogTimeFormat MailDomain MailProg MaxArraySize
    MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount
    MaxTasksPerNode MCSParameters MCSPlugin MemLimitEnforce MessageTimeout MetricsAuthUsers
    MetricsParameters MetricsType MinJobAge MpiDefault MpiParams MsgAggregationParams NamespaceType
    NodeFeaturesPlugins NodeName NodeSet OverTimeLimit PartitionName PluginDir PlugStackConfig PowerAction
    PowerParameters PowerPlugin PreemptExemptTime PreemptMode PreemptParameters PreemptType PrEpParameters
    PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge
    PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType
    PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
    PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData
    ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess
    PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit
    RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun
    ResvProlog ReturnToService RoutePlugin SallocDefaultCommand SbcastParameters SchedulerAuth
    SchedulerParameters SchedulerPort SchedulerRootFilter SchedulerTimeSlice SchedulerType ScronParameters
    SelectType SelectTypeParameters SerializerParameters SerializerPlugins SlurmctldAddr SlurmctldDebug
    SlurmctldHost SlurmctldHttpAuthParameters SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
    SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug
    SlurmctldTimeout SlurmdDebug SlurmdHttpAuthParameters SlurmdLogFile SlurmdParameters SlurmdPidFile
    SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmrestdHttpAuthParameters
    SlurmrestdParameters SlurmSchedLogFile SlurmSchedLogLevel SlurmstepdParameters SlurmUser SrunEpilog
    SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates
    SuspendProgram SuspendRate SuspendTime SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin
    TaskPluginParam TaskProlog TCPTimeout TLSParameters TLSType TmpFS TopologyParam TopologyPlugin
    TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM VSizeFactor
    WaitTime X11Parameters
    """
)
"""What a line may begin with."""

OF_NODES = _keys(
    """
    BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CPUSpecList Feature Features Gres GresConf
    MemSpecLimit NodeAddr NodeHostname Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU Sockets
    SocketsPerBoard State SuspendTime ThreadsPerCore TmpDisk Topology TRESWeights Weight
    """
)
"""What may follow NodeName on its line."""

OF_PARTITIONS = _keys(
    """
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCPUPerGPU
    DefMemPerCPU DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs Exclusive ExclusiveTopo
    ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxNodes
    MaxTime MinNodes Nodes OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority
    PriorityJobFactor PriorityTier QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State
    SuspendTime SuspendTimeout Topology TRESBillingWeights
    """
)
"""What may follow PartitionName."""

OF_FRONT_ENDS = _keys("AllowGroups AllowUsers DenyGroups DenyUsers FrontendAddr Port Reason State")
"""What may follow FrontendName, until Slurm 24.11."""

FOLLOWING = {
    "nodename": OF_NODES,
    "partitionname": OF_PARTITIONS,
    "frontendname": OF_FRONT_ENDS,
    "downnodes": frozenset({"Reason", "State"}),
    "nodeset": frozenset({"Feature", "Nodes"}),
    "poweraction": frozenset({"Location", "Program"}),
}
"""By the key that a line begins with, what may follow it; nothing where it is not here."""
