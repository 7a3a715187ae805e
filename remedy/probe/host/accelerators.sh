# --- accelerators ----------------------------------------------------------------------------------------

# Without the driver nvidia-smi would load it, and without its device files it would make them.
nvidia_answers() {
    has nvidia-smi || { absent 'nvidia-smi is not installed'; return 1; }
    [ -e /proc/driver/nvidia/version ] || { absent 'the NVIDIA driver is not loaded'; return 1; }
    [ -e /dev/nvidiactl ] || { absent 'there is no /dev/nvidiactl, which nvidia-smi would make'; return 1; }
}

# Twice the usual time: without persistence mode the driver starts every GPU anew, a second or more for each.
nvidia_gpus() {
    nvidia_answers || return
    guarded $((tool_limit * 2)) nvidia-smi --format=csv,noheader,nounits \
        --query-gpu=index,uuid,pci.bus_id,name,driver_version,persistence_mode,compute_mode,memory.total,memory.used,utilization.gpu
    nvidia_status=$status
}

nvidia_processes() {
    nvidia_answers || return
    if [ "$nvidia_status" = timeout ]; then status=timeout; return; fi
    guarded $((tool_limit * 2)) nvidia-smi --format=csv,noheader,nounits --query-compute-apps=pid,gpu_uuid,used_memory
}

nvidia_links() {
    nvidia_answers || return
    if [ "$nvidia_status" = timeout ]; then status=timeout; return; fi
    guarded $((tool_limit * 2)) nvidia-smi nvlink --status
}

# Access control between PCIe devices sends GPU traffic through the root complex; only root sees it, and only
# where there are GPUs is it worth the time.
pcie_acs() {
    { [ -e /proc/driver/nvidia/version ] && has lspci; } || { absent 'no NVIDIA driver or no lspci'; return; }
    guarded "$tool_limit" lspci -vvv | grep -aE '^[0-9a-f]|ACSCtl|^[0-9]+$'
}
